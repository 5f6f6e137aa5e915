-- The rows from before 0150, in a transaction of its own: no request waits for it.
insert into metadata_values (organisation_id, environment, key, value, row_id)
select organisation_id, environment, key, value #>> '{}', id
from (
  select organisation_id, environment, id, metadata from transfers where metadata <> '{}' and purpose <> 'withdrawal'
  union all select organisation_id, environment, id, metadata from withdrawals where metadata <> '{}'
) as before, jsonb_each(metadata)
where jsonb_typeof(value) in ('string', 'number', 'boolean') and length(value #>> '{}') <= 255
on conflict do nothing;
