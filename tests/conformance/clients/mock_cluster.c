// Consumers of librdkafka in groups on its mock cluster.
//
// It reads one JSON line, a list of {"id", "assignor", "topics", "members"}, lets all members of
// all groups join, and then lets the first member of each group leave. It writes one JSON line: per
// step and group, an object with the assigned partitions and the number of rebalances per member.
// The name of a member is its number in the group and its member id, such as "0 rdkafka-1f".
#include "rdkafka.h"
#include "rdkafka_mock.h"

#include <time.h>
#include <unistd.h>

#include "json.h"

#define DELAY_MILLISECONDS 4000
#define QUIET_SECONDS 5
#define LIMIT_SECONDS 100

typedef struct {
    rd_kafka_t *handle;
    int rebalances;
} consumer_t;

static time_t last_event;

static void rebalanced(rd_kafka_t *handle, rd_kafka_resp_err_t event,
                       rd_kafka_topic_partition_list_t *list, void *opaque) {
    consumer_t *consumer = opaque;
    int is_assigned = event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    last_event = time(NULL);
    consumer->rebalances += is_assigned;
    if (!strcmp(rd_kafka_rebalance_protocol(handle), "COOPERATIVE")) {
        rd_kafka_error_destroy(is_assigned ? rd_kafka_incremental_assign(handle, list)
                                           : rd_kafka_incremental_unassign(handle, list));
    } else {
        rd_kafka_assign(handle, is_assigned ? list : NULL);
    }
}

static void set(rd_kafka_conf_t *settings, const char *name, const char *value) {
    char reason[256];
    if (rd_kafka_conf_set(settings, name, value, reason, sizeof(reason)) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "%s\n", reason);
        exit(1);
    }
}

static void ignore_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
}

static void start(consumer_t *consumer, const char *bootstrap, const value_t *group, const value_t *member) {
    char reason[256];
    rd_kafka_conf_t *settings = rd_kafka_conf_new();
    set(settings, "bootstrap.servers", bootstrap);
    set(settings, "group.id", get(group, "id")->text);
    set(settings, "partition.assignment.strategy", get(group, "assignor")->text);
    set(settings, "session.timeout.ms", "30000");
    set(settings, "heartbeat.interval.ms", "300");
    rd_kafka_conf_set_opaque(settings, consumer);
    rd_kafka_conf_set_rebalance_cb(settings, rebalanced);
    rd_kafka_conf_set_log_cb(settings, ignore_log);
    consumer->handle = rd_kafka_new(RD_KAFKA_CONSUMER, settings, reason, sizeof(reason));
    rd_kafka_poll_set_consumer(consumer->handle);
    const value_t *topics = get(member, "topics");
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(topics->count);
    for (int i = 0; i < topics->count; i++)
        rd_kafka_topic_partition_list_add(list, topics->items[i].text, RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(consumer->handle, list);
    rd_kafka_topic_partition_list_destroy(list);
}

/** Poll all consumers until each has an assignment and none changes. */
static void wait_until_stable(consumer_t *consumers, int count) {
    time_t begin = last_event = time(NULL);
    while (time(NULL) < begin + LIMIT_SECONDS) {
        int waiting = 0;
        for (int i = 0; i < count; i++) {
            if (!consumers[i].handle)
                continue;
            rd_kafka_message_t *message = rd_kafka_consumer_poll(consumers[i].handle, 2);
            if (message)
                rd_kafka_message_destroy(message);
            waiting += consumers[i].rebalances == 0;
        }
        if (!waiting && time(NULL) > last_event + QUIET_SECONDS)
            return;
    }
}

static void write_member(int number, const consumer_t *consumer) {
    char name[256], *id = rd_kafka_memberid(consumer->handle);
    rd_kafka_topic_partition_list_t *list;
    rd_kafka_assignment(consumer->handle, &list);
    snprintf(name, sizeof(name), "%d %s", number, id);
    write_text(stdout, name);
    printf(": {\"rebalances\": %d, \"partitions\": [", consumer->rebalances);
    for (int i = 0; i < list->cnt; i++) {
        printf(i ? ", [" : "[");
        write_text(stdout, list->elems[i].topic);
        printf(", %d]", (int)list->elems[i].partition);
    }
    printf("]}");
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_mem_free(consumer->handle, id);
}

static void write_step(const value_t *groups, const consumer_t *consumers) {
    putchar('[');
    for (int g = 0; g < groups->count; g++) {
        int is_first = 1;
        printf(g ? ", {" : "{");
        for (int m = 0; m < get(&groups->items[g], "members")->count; m++, consumers++) {
            if (!consumers->handle)
                continue;
            printf(is_first ? "" : ", ");
            write_member(m, consumers);
            is_first = 0;
        }
        putchar('}');
    }
    putchar(']');
}

int main(void) {
    char *line = NULL, reason[256];
    size_t size = 0;
    value_t groups;
    if (getline(&line, &size, stdin) <= 0)
        return 1;
    read_value(line, &groups);
    rd_kafka_conf_t *settings = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(settings, ignore_log);
    rd_kafka_t *owner = rd_kafka_new(RD_KAFKA_PRODUCER, settings, reason, sizeof(reason));
    rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(owner, 1);
    rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, DELAY_MILLISECONDS);
    int count = 0;
    for (int g = 0; g < groups.count; g++) {
        const value_t *topics = get(&groups.items[g], "topics");
        for (int t = 0; t < topics->count; t++)
            rd_kafka_mock_topic_create(cluster, topics->keys[t], (int)topics->items[t].number, 1);
        count += get(&groups.items[g], "members")->count;
    }
    consumer_t *consumers = calloc(count, sizeof(*consumers)), *next = consumers;
    for (int g = 0; g < groups.count; g++) {
        const value_t *members = get(&groups.items[g], "members");
        for (int m = 0; m < members->count; m++)
            start(next++, rd_kafka_mock_cluster_bootstraps(cluster), &groups.items[g], &members->items[m]);
    }
    wait_until_stable(consumers, count);
    putchar('[');
    write_step(&groups, consumers);
    printf(", ");
    next = consumers;
    for (int g = 0; g < groups.count; g++) {
        rd_kafka_consumer_close(next->handle);
        rd_kafka_destroy(next->handle);
        next->handle = NULL;
        next += get(&groups.items[g], "members")->count;
    }
    for (int i = 0; i < count; i++)
        consumers[i].rebalances = 0;
    wait_until_stable(consumers, count);
    write_step(&groups, consumers);
    puts("]");
    fflush(stdout);
    _exit(0);
}
