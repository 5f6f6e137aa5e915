-- Blobs to delete are listed in shares of their owners. An earlier version leaves the column at its default: its blobs are one owner's.
alter table blob_deletions add column if not exists share_owner text not null default '-';
create index concurrently if not exists blob_deletions_due_by_owner on blob_deletions (share_owner, due_at, created_at);
