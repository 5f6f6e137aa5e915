-- The open sessions, which keep the month of their payment from being archived. Without it that question reads all sessions of the month under a lock.
create index concurrently if not exists sessions_open on sessions (expires_at) where revoked_at is null;
