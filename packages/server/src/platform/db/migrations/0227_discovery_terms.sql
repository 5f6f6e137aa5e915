-- What discovery finds paid resources by: a row for each combination of the resource's type and the account, scheme and network of an offer. A list with
-- filters reads the rows of one term in their order, and stops at its limit. A term is a hash, so that rows are small and a stranger cannot make another's.

create function discovery_term(type text, pay_to text, scheme text, network text) returns uuid language sql immutable parallel safe as $$
  select md5(coalesce(length(type) || ':' || type, '-') || coalesce(length(pay_to) || ':' || lower(pay_to), '-') || coalesce(length(scheme) || ':' || scheme, '-')
    || coalesce(length(network) || ':' || network, '-'))::uuid
$$;

create function discovery_key(organisation_id text, environment text, resource text, type text, operation text)
returns uuid language sql immutable parallel safe as $$
  select md5(organisation_id || environment || length(resource) || ':' || resource || length(type) || ':' || type || operation)::uuid
$$;

-- The terms of a resource with these offers, each once; none for no filter at all.
create function discovery_terms_of(type text, accepts jsonb) returns setof uuid language sql immutable parallel safe as $$
  select distinct discovery_term(
    case when kind then discovery_terms_of.type end, case when account then offer->>'payTo' end, case when scheme then offer->>'scheme' end,
    case when network then offer->>'network' end)
  from jsonb_array_elements(accepts) offer cross join (values (true), (false)) k (kind) cross join (values (true), (false)) a (account) cross join (values (true), (false)) s (scheme)
    cross join (values (true), (false)) n (network)
  where (kind or account or scheme or network) and (not account or offer->>'payTo' is not null) and (not scheme or offer->>'scheme' is not null)
    and (not network or offer->>'network' is not null)
$$;

create table discovery_terms (
  resource_key uuid not null,
  term uuid not null,
  environment text not null,
  organisation_id text not null,
  updated_at timestamptz not null,
  primary key (resource_key, term)
);
create index discovery_terms_newest on discovery_terms (environment, term, updated_at desc, resource_key);

-- Also keeps what an earlier version writes.
create function keep_discovery_terms() returns trigger language plpgsql as $$
declare
  key uuid;
begin
  if tg_op = 'DELETE' then
    delete from discovery_terms
    where resource_key = discovery_key(old.organisation_id, old.environment, old.resource, old.type, old.operation);
    return null;
  end if;
  key := discovery_key(new.organisation_id, new.environment, new.resource, new.type, new.operation);
  if tg_op = 'UPDATE' then
    delete from discovery_terms t where t.resource_key = key and t.term not in (select discovery_terms_of(new.type, new.accepts));
  end if;
  insert into discovery_terms as known (resource_key, term, environment, organisation_id, updated_at)
  select key, term, new.environment, new.organisation_id, new.updated_at from discovery_terms_of(new.type, new.accepts) as term
  on conflict (resource_key, term) do update set updated_at = excluded.updated_at;
  return null;
end $$;
create trigger keep_terms after insert or delete or update of accepts, updated_at on discovered_resources for each row
  execute function keep_discovery_terms();
