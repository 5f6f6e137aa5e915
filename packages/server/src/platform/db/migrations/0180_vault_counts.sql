-- Each tenant's vaults and their bytes, so that a recount of a large tenant does not read each vault. A trigger appends what a transaction
-- changes, so that no writer waits for another. A loop adds these rows to the counts and deletes them. A reader adds up both.
create table vault_counts (
  organisation_id text not null,
  environment text not null,
  active bigint not null,
  persisted bigint not null,
  bytes bigint not null,
  -- When the counts were last compared with the vaults.
  checked_at timestamptz not null default now(),
  primary key (organisation_id, environment)
);
create index vault_counts_by_check on vault_counts (checked_at);
create table vault_count_changes (
  organisation_id text not null,
  environment text not null,
  active integer not null,
  persisted integer not null,
  bytes bigint not null
);
create index vault_count_changes_by_tenant on vault_count_changes (organisation_id, environment);
create function note_vault_count() returns trigger language plpgsql as $$
begin
  insert into vault_count_changes (organisation_id, environment, active, persisted, bytes)
  values (coalesce(new.organisation_id, old.organisation_id), coalesce(new.environment, old.environment),
    coalesce((new.counted_as = 'active')::integer, 0) - coalesce((old.counted_as = 'active')::integer, 0),
    coalesce((new.counted_as = 'persisted')::integer, 0) - coalesce((old.counted_as = 'persisted')::integer, 0),
    coalesce(new.bytes, 0) - coalesce(old.bytes, 0));
  return null;
end $$;
create trigger count_vault after insert or delete on vaults for each row execute function note_vault_count();
create trigger count_vault_change after update of counted_as, bytes on vaults for each row
  when (old.counted_as <> new.counted_as or old.bytes <> new.bytes) execute function note_vault_count();
