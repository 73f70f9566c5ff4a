-- +goose Up

-- Why a revision was made, in words of who made it. The first entry of the revision has it.
ALTER TABLE change_log ADD COLUMN message TEXT NOT NULL DEFAULT '';
