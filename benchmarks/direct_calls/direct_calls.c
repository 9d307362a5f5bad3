// Prints the CPU seconds per call of an assignor of the C driver, without reading JSON.
//
// Usage: direct_calls REQUEST_FILE CALLS
#define main driver_main
#include "driver.c"
#undef main
#include <time.h>

int main(int count, char **arguments) {
    char reason[512], *line = NULL;
    size_t size = 0;
    FILE *file = fopen(arguments[1], "r");
    if (count < 3 || !file || getline(&line, &size, file) < 0)
        return 1;
    rd_kafka_conf_t *settings = rd_kafka_conf_new();
    rd_kafka_conf_set(settings, "group.id", "group", reason, sizeof(reason));
    client = rd_kafka_new(RD_KAFKA_CONSUMER, settings, reason, sizeof(reason));
    value_t request;
    read_value(line, &request);
    int calls = atoi(arguments[2]);
    clock_t start = 0;
    for (int i = -calls; i < calls; i++) {
        start = i == 0 ? clock() : start;
        answer(&request);
    }
    fprintf(stderr, "%.9f\n", (double)(clock() - start) / CLOCKS_PER_SEC / calls);
    _exit(0);
}
