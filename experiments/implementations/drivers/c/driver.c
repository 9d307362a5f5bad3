// Driver that calls the assignors of one version of librdkafka.
//
// It includes the source of the consumer group, because the functions that decode subscriptions
// and withhold partitions are private. All other code comes from the static library.
//
// It writes a line when it is ready. Then it reads one JSON line per group,
// {"assignor": NAME, "group": GROUP_DOCUMENT}, and writes one line: an object with the partitions
// per member, or {"failed": "error", "reason": TEXT} for an error of the library.
#include "rdkafka_cgrp.c"

#include <pthread.h>
#include <unistd.h>

#include "json.h"

#define RACKS_VERSION 0x02020000

static rd_kafka_t *client;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char *next_line;
static int is_ended;

/** Read lines. After the last line, end the process, even during a call of the library. */
static void *read_lines(void *unused) {
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        pthread_mutex_lock(&lock);
        while (next_line)
            pthread_cond_wait(&changed, &lock);
        next_line = line;
        line = NULL;
        size = 0;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    is_ended = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    sleep(1);
    _exit(0);
    return unused;
}

static char *wait_for_line(void) {
    pthread_mutex_lock(&lock);
    while (!next_line && !is_ended)
        pthread_cond_wait(&changed, &lock);
    char *line = next_line;
    next_line = NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return line;
}

static rd_kafkap_str_t *new_text(const value_t *value) {
    return rd_kafkap_str_new(value->text, value->text ? -1 : 0);
}

/** Encode the subscription of a member as its consumer does. */
static rd_kafkap_bytes_t *encode(const rd_kafka_assignor_t *assignor, const value_t *member) {
    const value_t *topics = get(member, "topics"), *owned = get(member, "owned");
    rd_list_t names;
    rd_list_init(&names, topics->count, NULL);
    for (int i = 0; i < topics->count; i++) {
        rd_kafka_topic_info_t *info = allocate(sizeof(*info));
        info->topic = topics->items[i].text;
        rd_list_add(&names, info);
    }
    rd_list_sort(&names, rd_kafka_topic_info_cmp);
    rd_kafka_topic_partition_list_t *before = rd_kafka_topic_partition_list_new(owned->count);
    for (int i = 0; i < owned->count; i++) {
        const value_t *pair = owned->items[i].items;
        rd_kafka_topic_partition_list_add(before, pair[0].text, (int32_t)pair[1].number);
    }
    const value_t *generation = get(member, "generation");
    void *state = NULL;
    if (assignor->rkas_on_assignment_cb && (owned->count || generation->kind == NUMBER)) {
        int number = generation->kind == NUMBER ? (int)generation->number : -1;
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new_with_genid(
            "group", number, get(member, "id")->text, get(member, "instance_id")->text);
        assignor->rkas_on_assignment_cb(assignor, &state, before, NULL, group);
        rd_kafka_consumer_group_metadata_destroy(group);
    }
    // An eager consumer has revoked its partitions before it joins.
    int is_cooperative = assignor->rkas_protocol == RD_KAFKA_REBALANCE_PROTOCOL_COOPERATIVE;
    const rd_kafka_topic_partition_list_t *kept = is_cooperative && owned->count ? before : NULL;
#if RD_KAFKA_VERSION >= RACKS_VERSION
    rd_kafkap_str_t *rack = new_text(get(member, "rack"));
    rd_kafkap_bytes_t *bytes = assignor->rkas_get_metadata_cb(assignor, state, &names, kept, rack);
    rd_kafkap_str_destroy(rack);
#else
    rd_kafkap_bytes_t *bytes = assignor->rkas_get_metadata_cb(assignor, state, &names, kept);
#endif
    if (state)
        assignor->rkas_destroy_state_cb(state);
    rd_kafka_topic_partition_list_destroy(before);
    rd_list_destroy(&names);
    return bytes;
}

/** Decode the subscriptions as the leader does. It ignores members without topics. */
static int join(const rd_kafka_assignor_t *assignor, const value_t *all, rd_kafka_group_member_t *members) {
    int joined = 0;
    for (int i = 0; i < all->count; i++) {
        const value_t *member = &all->items[i];
        rd_kafka_group_member_t *each = &members[joined];
        rd_kafkap_bytes_t *bytes = encode(assignor, member);
        memset(each, 0, sizeof(*each));
        each->rkgm_member_id = new_text(get(member, "id"));
        each->rkgm_group_instance_id = new_text(get(member, "instance_id"));
        each->rkgm_generation = -1;
        rd_list_init(&each->rkgm_eligible, 0, NULL);
        if (rd_kafka_group_MemberMetadata_consumer_read(client->rk_internal_rkb, each, bytes)) {
            rd_kafka_group_member_clear(each);
        } else {
            each->rkgm_assignment = rd_kafka_topic_partition_list_new(each->rkgm_subscription->cnt);
            joined++;
        }
        rd_kafkap_bytes_destroy(bytes);
    }
    return joined;
}

#if RD_KAFKA_VERSION >= RACKS_VERSION
static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/** Set the racks of the replicas of a partition, sorted and each once. */
static void set_racks(rd_kafka_metadata_partition_internal_t *partition, const value_t *racks) {
    char **names = allocate(racks->count * sizeof(*names) + 1);
    int count = 0, distinct = 0;
    for (int i = 0; i < racks->count; i++)
        if (racks->items[i].text)
            names[count++] = racks->items[i].text;
    qsort(names, count, sizeof(*names), compare_texts);
    for (int i = 0; i < count; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]))
            names[distinct++] = names[i];
    partition->racks = names;
    partition->racks_cnt = distinct;
}
#endif

static rd_kafka_metadata_t *describe(const value_t *topics) {
    rd_kafka_metadata_topic_t *all = allocate(topics->count * sizeof(*all) + 1);
    for (int i = 0; i < topics->count; i++) {
        const value_t *topic = &topics->items[i];
        all[i].topic = topics->keys[i];
        all[i].partition_cnt =
            (int)(topic->kind == OBJECT ? get(topic, "partitions") : topic)->number;
    }
#if RD_KAFKA_VERSION >= RACKS_VERSION
    rd_kafka_metadata_t *metadata = rd_kafka_metadata_new_topic_mock(all, topics->count, -1, 0);
    rd_kafka_metadata_internal_t *internal = rd_kafka_metadata_get_internal(metadata);
    for (int i = 0; i < topics->count; i++) {
        const value_t *racks = get(&topics->items[i], "racks");
        for (int p = 0; p < racks->count && p < all[i].partition_cnt; p++)
            set_racks(&internal->topics[i].partitions[p], &racks->items[p]);
    }
    return metadata;
#else
    return rd_kafka_metadata_new_topic_mock(all, topics->count);
#endif
}

static void write_assignment(const rd_kafka_group_member_t *members, int count) {
    putchar('{');
    for (int i = 0; i < count; i++) {
        const rd_kafka_topic_partition_list_t *list = members[i].rkgm_assignment;
        fputs(i ? ", " : "", stdout);
        write_text(stdout, members[i].rkgm_member_id->str);
        fputs(": [", stdout);
        for (int j = 0; j < list->cnt; j++) {
            fputs(j ? ", [" : "[", stdout);
            write_text(stdout, list->elems[j].topic);
            printf(", %d]", (int)list->elems[j].partition);
        }
        putchar(']');
    }
    puts("}");
}

static void write_failure(const char *reason) {
    fputs("{\"failed\": \"error\", \"reason\": ", stdout);
    write_text(stdout, reason);
    puts("}");
}

static void answer(const value_t *request) {
    rd_kafka_cgrp_t *leader = client->rk_cgrp;
    const value_t *group = get(request, "group"), *all = get(group, "members");
    rd_kafka_assignor_t *assignor = rd_kafka_assignor_find(client, get(request, "assignor")->text);
    if (!assignor) {
        write_failure("unknown assignor");
        return;
    }
    rd_kafka_group_member_t *members = calloc(all->count + 1, sizeof(*members));
    int count = join(assignor, all, members);
    rd_kafka_metadata_t *metadata = describe(get(group, "topics"));
    char reason[512] = "";
    if (all->count)
        rd_kafka_cgrp_set_member_id(leader, get(&all->items[0], "id")->text);
    rd_kafka_resp_err_t error = rd_kafka_assignor_run(
        leader, assignor, metadata, members, count, reason, sizeof(reason));
    if (error) {
        write_failure(*reason ? reason : rd_kafka_err2str(error));
    } else {
        if (assignor->rkas_protocol == RD_KAFKA_REBALANCE_PROTOCOL_COOPERATIVE)
            rd_kafka_cooperative_protocol_adjust_assignment(leader, members, count);
        write_assignment(members, count);
    }
    rd_kafka_metadata_destroy(metadata);
    for (int i = 0; i < count; i++)
        rd_kafka_group_member_clear(&members[i]);
    free(members);
}

static void ignore_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
}

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

static char summary[512];

static void keep_summary(const char *report) {
    const char *found = strstr(report, "SUMMARY: ");
    if (found)
        snprintf(summary, sizeof(summary), "%.*s", (int)strcspn(found, "\n"), found);
}

/** Write the summary last, because the last line of standard error describes a failure. */
static void write_summary(void) {
    fprintf(stderr, "%s\n", summary);
}

const char *__asan_default_options(void) {
    return "detect_leaks=0";
}
#endif

int main(void) {
    char reason[512];
#ifdef __SANITIZE_ADDRESS__
    __asan_set_error_report_callback(keep_summary);
    __sanitizer_set_death_callback(write_summary);
#endif
    rd_kafka_conf_t *settings = rd_kafka_conf_new();
    rd_kafka_conf_set(settings, "group.id", "group", reason, sizeof(reason));
    rd_kafka_conf_set_log_cb(settings, ignore_log);
    client = rd_kafka_new(RD_KAFKA_CONSUMER, settings, reason, sizeof(reason));
    if (!client) {
        fprintf(stderr, "%s\n", reason);
        return 1;
    }
    pthread_t reader;
    pthread_create(&reader, NULL, read_lines, NULL);
    puts("ready");
    fflush(stdout);
    for (char *line; (line = wait_for_line());) {
        value_t request;
        read_value(line, &request);
        answer(&request);
        fflush(stdout);
        free_arena();
        free(line);
    }
    _exit(0);
}
