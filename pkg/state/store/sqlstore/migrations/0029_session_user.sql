-- +goose Up

-- Sessions of users of an identity provider: its issuer, the name of the user in the history, and the group that gives
-- the rights. token is then a hash of the issuer and the subject. All are empty for a session of a token.
ALTER TABLE session ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN actor TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN user_group TEXT NOT NULL DEFAULT '';
