-- What `?metadata.<key>=<value>` finds: each text, number and boolean in the metadata of a transfer or a withdrawal. The primary key is in the
-- order of a list, whichever kind the row is of: its id begins with the kind. Metadata is never changed, so a row is only inserted.
create table metadata_values (
  organisation_id text not null,
  environment text not null,
  key text not null,
  value text not null,
  row_id text not null,
  primary key (organisation_id, environment, key, value, row_id)
);

-- A trigger also sees the rows of processes of the version before. Texts above 255 characters are left out: no filter takes them.
create function note_metadata() returns trigger language plpgsql as $$
begin
  insert into metadata_values (organisation_id, environment, key, value, row_id)
  select new.organisation_id, new.environment, key, value #>> '{}', new.id from jsonb_each(new.metadata)
  where jsonb_typeof(value) in ('string', 'number', 'boolean') and length(value #>> '{}') <= 255
  on conflict do nothing;
  return null;
end $$;
create trigger note_metadata after insert on transfers for each row
  when (new.metadata <> '{}' and new.purpose <> 'withdrawal') execute function note_metadata();
create trigger note_metadata after insert on withdrawals for each row when (new.metadata <> '{}') execute function note_metadata();
