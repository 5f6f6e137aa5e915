create unique index concurrently if not exists discovered_resources_by_key
  on discovered_resources (discovery_key(organisation_id, environment, resource, type, operation));
-- The terms of resources from before 0227, for some in each transaction. A resource that is reported meanwhile is locked, and has its terms by the trigger: both
-- write the same. An interrupted run begins again and adds nothing twice.
do $$
declare
  done uuid := '00000000-0000-0000-0000-000000000000';
  keys uuid[];
begin
  loop
    select array_agg(key order by key) into keys from (
      select discovery_key(organisation_id, environment, resource, type, operation) as key from discovered_resources
      where discovery_key(organisation_id, environment, resource, type, operation) > done
      order by discovery_key(organisation_id, environment, resource, type, operation) limit 500
    ) as next_resources;
    exit when keys is null;
    with locked as materialized (
      select * from discovered_resources
      where discovery_key(organisation_id, environment, resource, type, operation) = any(keys)
      order by discovery_key(organisation_id, environment, resource, type, operation) for share
    )
    insert into discovery_terms (resource_key, term, environment, organisation_id, updated_at)
    select discovery_key(organisation_id, environment, resource, type, operation), term, environment, organisation_id, updated_at
    from locked cross join lateral discovery_terms_of(type, accepts) as term
    on conflict (resource_key, term) do nothing;
    commit;
    done := keys[array_length(keys, 1)];
  end loop;
end $$;
analyze discovery_terms;
