// render.go - renders a chart with Helm's template engine (text/template and sprig), for tests.
//
// It is not Helm: it knows one chart without dependencies, and of the functions that Helm adds
// those below. Values are merged as Helm does it: maps key by key, null removes, lists are whole.
//
//	render CHART RELEASE NAMESPACE REVISION OBJECTS.yaml [VALUES.yaml ...]
//
// OBJECTS.yaml is a list of what the cluster has, for `lookup`. Prints JSON: the merged values,
// and the text of every template. What a template refuses goes to stderr, with exit status 1.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/ghodss/yaml"
)

type object = map[string]interface{}

type rendered struct {
	Values object            `json:"values"`
	Files  map[string]string `json:"files"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func load(path string, out interface{}) {
	text, err := os.ReadFile(path)
	check(err)
	if err := yaml.Unmarshal(text, out); err != nil {
		check(fmt.Errorf("%s: %w", path, err))
	}
}

func merge(into, over object) {
	for key, value := range over {
		inner, isMap := value.(object)
		before, wasMap := into[key].(object)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(before, inner)
		default:
			into[key] = value
		}
	}
}

func find(objects []object, version, kind, namespace, name string) object {
	for _, one := range objects {
		metadata, _ := one["metadata"].(object)
		if one["apiVersion"] == version && one["kind"] == kind &&
			metadata["namespace"] == namespace && metadata["name"] == name {
			return one
		}
	}
	return object{}
}

func toYaml(value interface{}) string {
	text, err := yaml.Marshal(value)
	check(err)
	return strings.TrimSuffix(string(text), "\n")
}

func fromYaml(text string) object {
	value := object{}
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return object{"Error": err.Error()}
	}
	return value
}

func required(words string, value interface{}) (interface{}, error) {
	if text, isText := value.(string); value == nil || isText && text == "" {
		return nil, fmt.Errorf("%s", words)
	}
	return value, nil
}

// The functions that Helm adds to sprig's, and without those that it takes away.
func functions(set *template.Template, objects []object) template.FuncMap {
	table := sprig.TxtFuncMap()
	delete(table, "env")
	delete(table, "expandenv")
	table["toYaml"] = toYaml
	table["fromYaml"] = fromYaml
	table["required"] = required
	table["lookup"] = func(version, kind, namespace, name string) object {
		return find(objects, version, kind, namespace, name)
	}
	table["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := set.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	table["tpl"] = func(text string, data interface{}) (string, error) {
		var out bytes.Buffer
		copied, err := set.Clone()
		if err == nil {
			copied, err = copied.New("tpl").Parse(text)
		}
		if err == nil {
			err = copied.Execute(&out, data)
		}
		return out.String(), err
	}
	return table
}

// Every file under templates/, by the name that Helm gives it.
func parse(set *template.Template, chart, name string) []string {
	var names []string
	check(filepath.Walk(filepath.Join(chart, "templates"), func(file string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(chart, file)
		if err != nil {
			return err
		}
		full := path.Join(name, filepath.ToSlash(inside))
		names = append(names, full)
		_, err = set.New(full).Parse(string(text))
		return err
	}))
	return names
}

// Chart.yaml's keys begin with a capital letter where templates read them.
func capitals(values object) object {
	out := object{}
	for key, value := range values {
		out[strings.ToUpper(key[:1])+key[1:]] = value
	}
	return out
}

func main() {
	if len(os.Args) < 6 {
		check(fmt.Errorf("usage: render CHART RELEASE NAMESPACE REVISION OBJECTS.yaml [VALUES.yaml ...]"))
	}
	chart := os.Args[1]
	revision, err := strconv.Atoi(os.Args[4])
	check(err)
	about, values, objects := object{}, object{}, []object{}
	load(filepath.Join(chart, "Chart.yaml"), &about)
	load(filepath.Join(chart, "values.yaml"), &values)
	load(os.Args[5], &objects)
	for _, file := range os.Args[6:] {
		over := object{}
		load(file, &over)
		merge(values, over)
	}

	set := template.New("gimbal").Option("missingkey=zero")
	set.Funcs(functions(set, objects))
	name := about["name"].(string)
	out := rendered{Values: values, Files: map[string]string{}}
	for _, file := range parse(set, chart, name) {
		if strings.HasPrefix(path.Base(file), "_") {
			continue
		}
		var text bytes.Buffer
		check(set.ExecuteTemplate(&text, file, object{
			"Values": values,
			"Chart":  capitals(about),
			"Release": object{"Name": os.Args[2], "Namespace": os.Args[3], "Revision": revision,
				"IsInstall": revision == 1, "IsUpgrade": revision > 1, "Service": "Helm"},
			"Capabilities": object{"KubeVersion": object{"Version": "v1.29.0", "Major": "1", "Minor": "29"}},
			"Template":     object{"Name": file, "BasePath": path.Join(name, "templates")},
		}))
		out.Files[file] = strings.ReplaceAll(text.String(), "<no value>", "")
	}
	check(json.NewEncoder(os.Stdout).Encode(out))
}
