-- A payment by a transaction on Tempo has a time of its next look at the chain (check_at), as unsettled payments of other networks have. A trigger sets the
-- first one, so that payments of a process of the release before have it too; that process follows them without it.
create function schedule_tempo_payment() returns trigger language plpgsql as $$
begin
  new.check_at := clock_timestamp() + interval '2 seconds';
  return new;
end $$;
create trigger schedule_tempo_payment before insert on payments for each row
  when (new.status = 'settling' and new.settlement ->> 'kind' = 'tempo') execute function schedule_tempo_payment();
update payments set check_at = clock_timestamp() where status = 'settling' and settlement ->> 'kind' = 'tempo' and check_at is null;
