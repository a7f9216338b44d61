/* generate.c - `gimbal generate`: continues a text with the model of a checkpoint. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/checkpoint/saved.h"
#include "coordinator/cli/exit.h"

#include <inttypes.h>
#include <stdlib.h>

#define TEMPERATURE_STANDARD "0.8"
#define TEMPERATURE_MAX 100

struct generate_values {
    struct saved_flags saved;
    const char *prompt, *temperature, *device;
    int64_t bytes, seed;
};

static const struct flag generate_flags[] = {
    SAVED_FLAGS(struct generate_values, saved),
    {"prompt", 'p', FLAG_TEXT, offsetof(struct generate_values, prompt), "TEXT",
     "the text to continue"},
    {"bytes", 'n', FLAG_NUMBER, offsetof(struct generate_values, bytes), "N",
     "how many bytes to write, the last token whole (200)", .standard = 200, .greatest = 1000000},
    {"temperature", 't', FLAG_TEXT, offsetof(struct generate_values, temperature), "NUMBER",
     "0: always take the likeliest token (0.8)"},
    {"seed", 0, FLAG_NUMBER, offsetof(struct generate_values, seed), "N",
     "the same seed gives the same text (1)", .standard = 1},
    {"device", 0, FLAG_TEXT, offsetof(struct generate_values, device), "DEVICE",
     "where to compute: cpu, cuda or cuda:GPU-6f0c... (cpu)"},
    {.name = NULL},
};

static int check_temperature(const char *text, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= TEMPERATURE_MAX))
        return error_set(err, EXIT_USAGE, "--temperature '%s' is not a number from 0 to %d", text,
                         TEMPERATURE_MAX);
    return EXIT_DONE;
}

static int write_text(const struct generate_values *values, const char *temperature,
                      const struct saved *saved, struct error *err)
{
    char bytes[24], seed[24];
    snprintf(bytes, sizeof bytes, "%" PRId64, values->bytes);
    snprintf(seed, sizeof seed, "%" PRId64, values->seed);
    const char *const words[] = {"--generate",
                                 saved->folder,
                                 "--job",
                                 saved->job,
                                 "--prompt",
                                 values->prompt ? values->prompt : "",
                                 "--bytes",
                                 bytes,
                                 "--temperature",
                                 temperature,
                                 "--seed",
                                 seed,
                                 values->device ? "--device" : NULL,
                                 values->device,
                                 NULL};
    return saved_read(words, saved->keep, "the model", err);
}

static int run(const struct invocation *invocation, struct error *err)
{
    const struct generate_values *values = invocation->values;
    struct saved saved;
    const char *temperature = values->temperature ? values->temperature : TEMPERATURE_STANDARD;
    int code = check_temperature(temperature, err);
    if (code == EXIT_DONE)
        code =
            saved_open(&invocation->common, &values->saved, invocation->arguments[0], &saved, err);
    if (code != EXIT_DONE)
        return code;
    code = write_text(values, temperature, &saved, err);
    saved_close(&saved);
    return code;
}

const struct command command_generate = {
    .name = "generate",
    .summary = "Continue a text with the model of a checkpoint",
    .arguments = "JOB|DIRECTORY",
    .arguments_min = 1,
    .arguments_max = 1,
    .flags = generate_flags,
    .values_size = sizeof(struct generate_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
