-- Kinds of state: the last document of a stable group, the key of hashed names, and totals.
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS state (
    kind TEXT, group_id TEXT, label TEXT, value, PRIMARY KEY (kind, group_id, label));
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, time REAL, group_id TEXT, kind TEXT, content TEXT);
CREATE INDEX IF NOT EXISTS events_of_group ON events (group_id, id);
CREATE INDEX IF NOT EXISTS events_by_time ON events (time);
