-- As 0160, for the audit log. No log has two records of one sequence: the greatest one of each log stands beside the records, which may be archived.
lock table audit_log in access exclusive mode;
create table audit_sequences (
  organisation_id text primary key,
  sequence bigint not null
);
insert into audit_sequences (organisation_id, sequence) select organisation_id, sequence from audit_heads;

-- The records of a statement must follow all of their log, whoever inserts them: also a process of the version before.
create function note_audit_sequences() returns trigger language plpgsql as $$
declare
  own record;
begin
  for own in
    select organisation_id, min(sequence) as first, max(sequence) as last, count(distinct sequence) = count(*) as is_once
    from added group by organisation_id order by organisation_id
  loop
    insert into audit_sequences as known (organisation_id, sequence) values (own.organisation_id, own.last)
    on conflict (organisation_id) do update set sequence = excluded.sequence where known.sequence < own.first;
    if not found or not own.is_once then
      raise unique_violation using message = format('the audit log of %s has a record %s already', own.organisation_id, own.first);
    end if;
  end loop;
  return null;
end $$;

-- Where the chain of a log goes on behind archived records: each run of them that follow one another, with the hash before the first and that of the last.
create table archived_audit_runs (
  organisation_id text not null,
  first_sequence bigint not null,
  last_sequence bigint not null check (last_sequence >= first_sequence),
  previous_hash bytea not null,
  last_hash bytea not null,
  partition text not null references archives (partition) on delete cascade,
  primary key (organisation_id, first_sequence)
);
create index archived_audit_runs_by_partition on archived_audit_runs (partition);

alter table audit_log drop constraint audit_log_pkey;
alter table audit_log drop constraint audit_log_id_key;
alter table audit_log rename to audit_log_first;
alter table audit_log_first add constraint audit_log_first_pkey primary key using index audit_log_by_id;
alter index audit_log_by_sequence rename to audit_log_first_by_sequence;
alter index audit_log_by_action rename to audit_log_first_by_action;
alter index audit_log_by_target rename to audit_log_first_by_target;
alter index audit_log_by_actor rename to audit_log_first_by_actor;
alter index audit_log_by_time rename to audit_log_first_by_time;
create table audit_log (like audit_log_first including defaults including constraints including storage) partition by range (id);
alter table audit_log add constraint audit_log_pkey primary key (id);
create index audit_log_by_sequence on audit_log (organisation_id, sequence);
create index audit_log_by_action on audit_log (organisation_id, action, sequence);
create index audit_log_by_target on audit_log (organisation_id, target, sequence);
create index audit_log_by_actor on audit_log (organisation_id, (coalesce(actor ->> 'apiKeyId', actor ->> 'accountId')), sequence);
create index audit_log_by_time on audit_log (organisation_id, created_at, sequence);
alter table audit_log attach partition audit_log_first for values from (minvalue) to (maxvalue);
create trigger note_audit_sequences after insert on audit_log referencing new table as added
  for each statement execute function note_audit_sequences();
