-- +goose Up

-- What a token with the role editor may change: words with spaces between them. 0 objects means any number.
ALTER TABLE token ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN hosts TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN ports TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN max_objects BIGINT NOT NULL DEFAULT 0;
