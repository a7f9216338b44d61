/* completion.c - `gimbal completion SHELL`: what a shell offers behind what has been typed.
 *
 * Scripts know nothing: they ask `gimbal completion words -- WORD ...`, whose last word is the one
 * at the cursor, and print what it answers, a line each: a word, a tab, and what it is. ":files"
 * stands for the names of files. What may stand where follows from the tables that the help and the
 * reading of the command line follow from, what jobs and nodes there are from the coordinator; if
 * that does not answer at once, there are none. */
#include "common/base/memory.h"
#include "common/config/job.h"
#include "common/message/message.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/planner/searches/searches.h"
#include "coordinator/planning/cluster_file.h"
#include "coordinator/resources/resources.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 256
#define PATIENCE_S 1.0

/* The command line up to the cursor. */
struct typed {
    struct common common;          /* as far as calls to the coordinator need it */
    const char *current;           /* the word at the cursor; "" before its first letter */
    size_t cut;                    /* so many bytes of it are earlier words to the shell */
    const char *prefix;            /* of the current word, in front of a value: "--output=" or "" */
    const struct command *command; /* NULL: not named yet */
    const struct flag *flag;       /* whose value the current word is; NULL: of none */
    int position;                  /* of the current word among the command's arguments */
    bool verbatim;                 /* behind "--" */
    bool unknown;                  /* what was typed is no command */
};

/* Offer a word, unless something else has been typed. */
static void completion_offer(const struct typed *typed, const char *word, size_t length,
                             const char *about)
{
    char *whole = xasprintf("%s%.*s", typed->prefix, (int)length, word);
    if (strncmp(whole, typed->current, strlen(typed->current)) == 0)
        printf("%s\t%s\n", whole + typed->cut, about);
    free(whole);
}

static void completion_offer_files(void)
{
    puts(":files");
}

static void completion_offer_jobs(const struct typed *typed)
{
    Gimbal__ListJobsRequest request = GIMBAL__LIST_JOBS_REQUEST__INIT;
    ProtobufCMessage *reply;
    struct error err;
    request.all = true;
    request.user = (char *)"";
    if (client_call_once(&typed->common, COORDINATOR_LIST_JOBS, &request.base, &reply, &err) !=
        EXIT_DONE)
        return;
    const Gimbal__ListJobsReply *list = (const Gimbal__ListJobsReply *)reply;
    for (size_t i = 0; i < list->n_jobs; i++) {
        const Gimbal__JobStatus *job = list->jobs[i];
        completion_offer(typed, job->job, strlen(job->job), resource_job_state(job->state));
    }
    message_free(reply);
}

static void completion_offer_nodes(const struct typed *typed)
{
    Gimbal__ListNodesReply *list;
    struct error err;
    if (client_list_nodes_once(&typed->common, &list, &err) != EXIT_DONE)
        return;
    for (size_t i = 0; i < list->n_nodes; i++) {
        const Gimbal__NodeStatus *node = list->nodes[i];
        completion_offer(typed, node->name, strlen(node->name), resource_node_state(node->state));
    }
    message_free(&list->base);
}

/* Level by level: "train." and then "train.lr". */
static void completion_offer_keys(const struct typed *typed, const char *above,
                                  const struct field *fields)
{
    size_t length = strlen(above);
    if (strncmp(typed->current, above, length) != 0)
        return;
    for (; fields->key; fields++) {
        char *key = xasprintf("%s%s%s", above, fields->key, fields->fields ? "." : "");
        if (!strchr(typed->current + length, '.'))
            completion_offer(typed, key, strlen(key), fields->about ? fields->about : "");
        else if (fields->fields)
            completion_offer_keys(typed, key, fields->fields);
        free(key);
    }
}

static void completion_offer_every_key(const struct typed *typed)
{
    completion_offer_keys(typed, "", job_config_fields);
    completion_offer_keys(typed, "job.", job_config_fields);
    completion_offer_keys(typed, "cluster.", cluster_config_fields);
}

/* What the help calls an argument or a value: "JOB", "worker", "dp=N". Of others nothing is known.
 */
static void completion_offer_kind(const struct typed *typed, const char *kind, size_t length)
{
    static const struct {
        const char *name;
        void (*offer)(const struct typed *typed);
    } kinds[] = {{"JOB", completion_offer_jobs},
                 {"NODE", completion_offer_nodes},
                 {"KEY", completion_offer_every_key}};
    static const char *const files[] = {"FILE", "DIR", "PATH", "TEXT...", "OUT"};
    if (islower((unsigned char)kind[0])) {
        const char *equals = memchr(kind, '=', length);
        completion_offer(typed, kind, equals ? (size_t)(equals + 1 - kind) : length, "");
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(kinds[i].name, kind, length) == 0 && !kinds[i].name[length])
            kinds[i].offer(typed);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (memmem(kind, length, files[i], strlen(files[i]))) {
            completion_offer_files();
            return;
        }
}

/* "JOB|DIRECTORY" */
static void completion_offer_kinds(const struct typed *typed, const char *kinds, size_t length)
{
    for (size_t at = 0, size; at < length; at += size + 1) {
        size = strcspn(kinds + at, "| ");
        size = at + size < length ? size : length - at;
        completion_offer_kind(typed, kinds + at, size);
    }
}

/* The words of the command's arguments as the help has them: "[JOB ...]", "worker|user NAME". What
 * is behind "--" is another program's. */
static void completion_offer_arguments(const struct typed *typed)
{
    const char *const brackets = "[] ";
    const char *at = typed->command->arguments + strspn(typed->command->arguments, brackets);
    for (int i = 0; *at; i++) {
        size_t length = strcspn(at, brackets);
        const char *next = at + length + strspn(at + length, brackets);
        bool repeated =
            strncmp(next, "...", 3) == 0 || (length > 3 && strncmp(at + length - 3, "...", 3) == 0);
        if (strncmp(at, "--", 2) == 0)
            return;
        if (i == typed->position || repeated) {
            completion_offer_kinds(typed, at, length);
            return;
        }
        at = next;
    }
}

/* A format, or a file whose name ends with one. */
static void completion_offer_output(const struct typed *typed)
{
    unsigned takes = typed->command ? typed->command->takes : ~0u;
    for (enum output output = 0; output_words[output]; output++) {
        if (takes & output_takes(output))
            completion_offer(typed, output_words[output], strlen(output_words[output]), "");
    }
    if (typed->current[strlen(typed->prefix)]) /* else they hide the formats */
        completion_offer_files();
}

static void completion_offer_values(const struct typed *typed)
{
    const struct flag *flag = typed->flag;
    if (strcmp(flag->name, "output") == 0)
        completion_offer_output(typed);
    for (const char *const *word = flag->words; word && *word; word++)
        completion_offer(typed, *word, strlen(*word), "");
    for (size_t i = 0; strcmp(flag->name, "search") == 0 && searches[i]; i++)
        completion_offer(typed, searches[i]->name, strlen(searches[i]->name), "");
    completion_offer_kinds(typed, flag->value, strlen(flag->value));
}

/* Those of the table that a command with these `takes` has. */
static void completion_offer_flags(const struct typed *typed, const struct flag *flags,
                                   unsigned takes)
{
    for (; flags && flags->name; flags++) {
        char *word = xasprintf("--%s", flags->name);
        if ((common_flag_takes(flags) & ~takes) == 0)
            completion_offer(typed, word, strlen(word), flags->help);
        free(word);
    }
}

static void completion_offer_commands(const struct typed *typed, const struct command *const *table)
{
    for (; table && *table; table++) {
        const char *second = strchr((*table)->name, ' ');
        const char *name = second ? second + 1 : (*table)->name;
        completion_offer(typed, name, strlen(name), (*table)->summary);
    }
}

/* The flag of this name, or, if that is NULL, of this letter. */
static const struct flag *completion_find_flag(const struct command *command, const char *name,
                                               size_t length, char letter)
{
    const struct flag *tables[] = {command ? command->flags : NULL, common_flags};
    for (size_t i = 0; i < 2; i++)
        for (const struct flag *flag = tables[i]; flag && flag->name; flag++)
            if (name ? strncmp(flag->name, name, length) == 0 && !flag->name[length]
                     : flag->letter == letter)
                return flag;
    return NULL;
}

/* Take note of a value that calls to the coordinator need. */
static void completion_take_value(struct typed *typed, const char *value)
{
    if (strcmp(typed->flag->name, "address") == 0)
        typed->common.address = value;
    if (strcmp(typed->flag->name, "tls") == 0)
        typed->common.tls = value;
    typed->flag = NULL;
}

/* Go past a word that is a flag, or flags: typed->flag is the one whose value comes next. */
static void completion_pass_flag(struct typed *typed, const char *word)
{
    const char *equals = strchr(word, '=');
    if (word[1] == '-') {
        size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
        typed->verbatim = !word[2];
        typed->flag = completion_find_flag(typed->command, word + 2, length, 0);
        if (typed->flag && typed->flag->kind == FLAG_SWITCH)
            typed->flag = NULL;
        if (typed->flag && equals)
            completion_take_value(typed, equals + 1);
        else if (typed->flag && typed->flag->kind == FLAG_OPTION)
            typed->flag = NULL;
        return;
    }
    for (const char *letter = word + 1; *letter; letter++) {
        const struct flag *flag = completion_find_flag(typed->command, NULL, 0, *letter);
        if (!flag || flag->kind == FLAG_SWITCH || flag->kind == FLAG_OPTION)
            continue;
        typed->flag = letter[1] ? NULL : flag;
        return;
    }
}

/* Go past a word before the current one. */
static void completion_pass(struct typed *typed, const char *word)
{
    const struct command *below;
    if (typed->flag)
        completion_take_value(typed, word);
    else if (typed->verbatim)
        typed->position++;
    else if (word[0] == '-' && word[1])
        completion_pass_flag(typed, word);
    else if (!typed->command && strcmp(word, "help") == 0)
        ;
    else if (!typed->command)
        typed->unknown = !(typed->command = command_find(commands, word));
    else if (typed->position == 0 && (below = command_find_below(typed->command, word)))
        typed->command = below;
    else
        typed->position++;
}

/* bash parts words at '=' and ':', which are words then: put them together, and tell how much of
 * the last one consists of earlier words. Returns how many there are, each owned by the caller. */
static int completion_join(char **words, int count, char **joined, size_t *cut)
{
    int kept = 0;
    bool open = false;
    *cut = 0;
    for (int i = 0; i < count; i++) {
        bool breaks = words[i][0] && !words[i][strspn(words[i], "=:")];
        *cut = 0;
        if (kept > 0 && (open || breaks)) {
            char *first = joined[kept - 1];
            *cut = strlen(first) + (breaks ? strlen(words[i]) : 0);
            joined[kept - 1] = xasprintf("%s%s", first, words[i]);
            free(first);
        } else {
            joined[kept++] = xstrdup(words[i]);
        }
        open = breaks;
    }
    return kept;
}

static void completion_offer_current(struct typed *typed)
{
    const char *equals = strchr(typed->current, '=');
    char *prefix = NULL;
    if (!typed->flag && !typed->verbatim && strncmp(typed->current, "--", 2) == 0 && equals) {
        typed->prefix = prefix =
            xasprintf("%.*s", (int)(equals + 1 - typed->current), typed->current);
        typed->flag = completion_find_flag(typed->command, typed->current + 2,
                                           (size_t)(equals - typed->current - 2), 0);
        if (typed->flag && typed->flag->kind != FLAG_SWITCH)
            completion_offer_values(typed);
    } else if (typed->flag) {
        completion_offer_values(typed);
    } else if (typed->verbatim) {
        completion_offer_files();
    } else if (typed->current[0] == '-') {
        completion_offer_flags(typed, typed->command ? typed->command->flags : NULL, ~0u);
        completion_offer_flags(typed, common_flags, typed->command ? typed->command->takes : ~0u);
    } else if (!typed->command) {
        completion_offer_commands(typed, commands);
    } else {
        if (typed->position == 0)
            completion_offer_commands(typed, typed->command->below);
        if (!typed->command->below || typed->command->arguments_max > 0)
            completion_offer_arguments(typed);
    }
    free(prefix);
}

/* What may stand for the last of the words. */
static void completion_offer_words(char **words, int count)
{
    struct typed typed = {.prefix = "", .current = "", .common.timeout_s = PATIENCE_S};
    char *joined[WORDS_MAX];
    count = completion_join(words, count < WORDS_MAX ? count : WORDS_MAX, joined, &typed.cut);
    for (int i = 0; i + 1 < count && !typed.unknown; i++)
        completion_pass(&typed, joined[i]);
    if (count > 0)
        typed.current = joined[count - 1];
    if (!typed.unknown)
        completion_offer_current(&typed);
    for (int i = 0; i < count; i++)
        free(joined[i]);
}

/* A word that ends with '=' or '.' is not complete yet. What stands between ':' or '=' and the
 * cursor is what bash completes. */
static const char bash_script[] =
    "# eval \"$(gimbal completion bash)\"\n"
    "_gimbal() {\n"
    "    local word about current=${COMP_WORDS[COMP_CWORD]} gimbal=${1:-gimbal}\n"
    "    [[ $current != [=:] ]] || current=\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r word about; do\n"
    "        if [[ $word == :files ]]; then\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$current\")\n"
    "        else\n"
    "            COMPREPLY+=(\"$word\")\n"
    "            [[ $word != *[=.] ]] || compopt -o nospace 2>/dev/null\n"
    "        fi\n"
    "    done < <(\"${gimbal/#\\~/$HOME}\" completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
    "2>/dev/null)\n"
    "}\n"
    "complete -F _gimbal gimbal\n";

/* As a file in a folder of functions it is the body of the function; read by eval it defines it. */
static const char zsh_script[] =
    "#compdef gimbal\n"
    "# eval \"$(gimbal completion zsh)\"\n"
    "_gimbal() {\n"
    "    local word about files\n"
    "    local -a whole open\n"
    "    while IFS=$'\\t' read -r word about; do\n"
    "        case $word in\n"
    "        (:files) files=1 ;;\n"
    "        (*[=.]) open+=(\"${word//:/\\\\:}:$about\") ;;\n"
    "        (*) whole+=(\"${word//:/\\\\:}:$about\") ;;\n"
    "        esac\n"
    "    done < <(\"${(e)~words[1]}\" completion words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    (( ! $#whole )) || _describe gimbal whole\n"
    "    (( ! $#open )) || _describe gimbal open -S ''\n"
    "    [[ -z $files ]] || { [[ $words[CURRENT] != --*=* ]] || compset -P 1 '*='; _files; }\n"
    "}\n"
    "if [[ $funcstack[1] == _gimbal ]]; then\n"
    "    _gimbal \"$@\"\n"
    "else\n"
    "    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\n"
    "    compdef _gimbal gimbal\n"
    "fi\n";

static const char fish_script[] =
    "# gimbal completion fish | source\n"
    "function __gimbal_words\n"
    "    set -l typed (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    for line in ($typed[1] completion words -- $typed[2..-1] \"$current\" 2>/dev/null)\n"
    "        if test \"$line\" = :files\n"
    "            __fish_complete_path \"$current\"\n"
    "        else\n"
    "            echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c gimbal -f -a '(__gimbal_words)'\n";

static const struct shell {
    const char *name, *script;
} shells[] = {{"bash", bash_script}, {"fish", fish_script}, {"zsh", zsh_script}};

static int completion_run(const struct invocation *invocation, struct error *err)
{
    const char *shell = invocation->arguments[0];
    if (strcmp(shell, "words") == 0) {
        completion_offer_words(invocation->arguments + 1, invocation->argument_count - 1);
        return EXIT_DONE;
    }
    if (invocation->argument_count > 1)
        return error_set(err, EXIT_USAGE, "'%s' is one argument too many",
                         invocation->arguments[1]);
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shell, shells[i].name) == 0) {
            fputs(shells[i].script, stdout);
            return EXIT_DONE;
        }
    return error_set(err, EXIT_USAGE, "no completion for '%s'; known: bash, fish, zsh", shell);
}

const struct command command_completion = {
    .name = "completion",
    .summary = "Print the completion script for a shell",
    .arguments = "bash|fish|zsh",
    .arguments_min = 1,
    .arguments_max = WORDS_MAX, /* those of `completion words` */
    .run = completion_run,
};
