-- What `purser admin archive` has written of each partition. Its row is there before its files are, so that what a killed run left is found.
create table archives (
  -- The partition's own table, such as events_from_2026_12.
  partition text primary key,
  table_name text not null,
  begins_at timestamptz,
  ends_at timestamptz not null,
  -- 'writing': the rows are in their table alone. 'written': in the files too. 'archived': in the files alone.
  state text not null check (state in ('writing', 'written', 'archived')),
  rows bigint not null default 0,
  -- Blob keys of the files, the manifest last.
  files text[] not null default '{}',
  -- SHA-256 of the rows in the order of their ids, and of the manifest. A manifest names that of the partition before.
  rows_hash bytea,
  manifest_hash bytea,
  created_at timestamptz not null,
  archived_at timestamptz
);
create index archives_by_table on archives (table_name, ends_at);

-- The ids of archived rows, so that each is 410 for its organisation and 404 for others: 16 bytes for each, up to 1,000 in a row, in order.
create table archived_ids (
  organisation_id text not null,
  environment text not null,
  first_id text not null,
  ids bytea not null,
  partition text not null references archives (partition) on delete cascade,
  primary key (organisation_id, environment, first_id)
);
create index archived_ids_by_partition on archived_ids (partition);
