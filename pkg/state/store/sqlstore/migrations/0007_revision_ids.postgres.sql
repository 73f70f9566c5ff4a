-- +goose Up

-- Random: the number of a revision comes again after the restore of an older
-- backup. parent is the id of the revision before.
ALTER TABLE revision ADD COLUMN id TEXT NOT NULL DEFAULT '';
UPDATE revision SET id = replace(gen_random_uuid()::text, '-', '');
ALTER TABLE change_log ADD COLUMN parent TEXT NOT NULL DEFAULT '';
