-- Revoking a key finds the keys that it made, also in organizations that it created.
create index concurrently if not exists api_keys_by_maker on api_keys using gin (made_by_keys);
