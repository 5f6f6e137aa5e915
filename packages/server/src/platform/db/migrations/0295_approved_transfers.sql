-- When the approval of a transfer was applied. Its time to wait for other transfers is counted from then.
alter table transfers add column if not exists released_at timestamptz;
