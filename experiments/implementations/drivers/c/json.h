// Reader of JSON lines. The values live until the arena is freed. Invalid input ends the process.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct value {
    enum { NONE, NUMBER, TEXT, LIST, OBJECT } kind;
    long number;
    char *text;
    int count;
    struct value *items;
    char **keys;
} value_t;

typedef struct block {
    struct block *next;
} block_t;

static block_t *arena;

/** Allocate memory that free_arena frees. */
static void *allocate(size_t size) {
    block_t *block = calloc(1, sizeof(*block) + size);
    block->next = arena;
    arena = block;
    return block + 1;
}

static void free_arena(void) {
    while (arena) {
        block_t *next = arena->next;
        free(arena);
        arena = next;
    }
}

static void reject(const char *at) {
    fprintf(stderr, "the input is not JSON: %.40s\n", at);
    exit(1);
}

static const char *skip_space(const char *at) {
    return at + strspn(at, " \t\r\n");
}

static char *put_utf8(char *to, unsigned code) {
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int following = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *to++ = (char)(~(0x7F >> following) | (code >> 6 * following));
    while (following--)
        *to++ = (char)(0x80 | (code >> 6 * following & 0x3F));
    return to;
}

static const char *read_text(const char *at, char **text) {
    size_t length = 0;
    while (at[length + 1] != '"' && at[length + 1])
        length += at[length + 1] == '\\' ? 2 : 1;
    char *to = *text = allocate(length + 1);
    for (at++; *at != '"'; at++) {
        if (!*at)
            reject(at);
        if (*at != '\\') {
            *to++ = *at;
            continue;
        }
        const char *known = strchr("n\nt\tr\rb\bf\f", *++at);
        if (*at != 'u') {
            *to++ = known ? known[1] : *at;
            continue;
        }
        unsigned code = 0, low = 0;
        sscanf(at + 1, "%4x", &code);
        at += 4;
        if (code >= 0xD800 && code < 0xDC00 && sscanf(at + 1, "\\u%4x", &low) == 1) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            at += 6;
        }
        to = put_utf8(to, code);
    }
    return at + 1;
}

static const char *read_value(const char *at, value_t *into);

static const char *read_items(const char *at, value_t *into) {
    char end = *at == '[' ? ']' : '}';
    int capacity = 0;
    at = skip_space(at + 1);
    while (*at != end) {
        if (into->count == capacity) {
            capacity = capacity ? 2 * capacity : 8;
            value_t *items = allocate(capacity * sizeof(*items));
            char **keys = allocate(capacity * sizeof(*keys));
            if (into->count) {
                memcpy(items, into->items, into->count * sizeof(*items));
                memcpy(keys, into->keys, into->count * sizeof(*keys));
            }
            into->items = items;
            into->keys = keys;
        }
        if (end == '}') {
            if (*at != '"')
                reject(at);
            at = skip_space(read_text(at, &into->keys[into->count]));
            if (*at++ != ':')
                reject(at);
        }
        at = skip_space(read_value(at, &into->items[into->count++]));
        if (*at == ',')
            at = skip_space(at + 1);
        else if (*at != end)
            reject(at);
    }
    return at + 1;
}

static const char *read_value(const char *at, value_t *into) {
    at = skip_space(at);
    *into = (value_t){.kind = NONE};
    if (*at == '"') {
        into->kind = TEXT;
        return read_text(at, &into->text);
    }
    if (*at == '[' || *at == '{') {
        into->kind = *at == '[' ? LIST : OBJECT;
        return read_items(at, into);
    }
    char *end = (char *)at + strspn(at, "nulltruefalse");
    if (end == at) {
        into->kind = NUMBER;
        into->number = (long)strtod(at, &end);
        if (end == at)
            reject(at);
    }
    return end;
}

/** Return the value of a key, or an empty value. */
static const value_t *get(const value_t *object, const char *key) {
    static const value_t empty = {.kind = NONE};
    for (int i = 0; object->kind == OBJECT && i < object->count; i++)
        if (!strcmp(object->keys[i], key))
            return &object->items[i];
    return &empty;
}

static void write_text(FILE *to, const char *text) {
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(to, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(to, "\\u%04x", *text);
        else
            putc(*text, to);
    }
    putc('"', to);
}
