-- What keeps vaults within their bounds: events that count, uploads that reserve, deletions that wait their turn, and seals whose
-- proofs need no second look at every item.

-- Bytes that an event counts for. Those of the service itself, and those from before events counted, count for none.
alter table vault_events add column size integer not null default 0;

-- Bytes of the plan's storage that an upload has been promised so far.
alter table vault_uploads add column reserved_bytes bigint not null default 0;
create index vault_uploads_by_tenant on vault_uploads (organisation_id, environment);

-- A blob that its store did not let go of is tried again later, and does not stand in the way of the others.
alter table blob_deletions add column attempts integer not null default 0;
alter table blob_deletions add column due_at timestamptz not null default '-infinity';
drop index blob_deletions_oldest;
create index blob_deletions_due on blob_deletions (due_at, created_at);

-- The Merkle tree of a sealed vault: every node, 32 bytes each, the leaves first and then each level above them. Out of line and
-- not compressed, so that a path of seventeen nodes is read without the other two hundred thousand.
create table vault_seal_trees (
  vault_id text primary key references vaults (id) on delete cascade,
  organisation_id text not null,
  environment text not null,
  nodes bytea not null
);
alter table vault_seal_trees alter column nodes set storage external;
