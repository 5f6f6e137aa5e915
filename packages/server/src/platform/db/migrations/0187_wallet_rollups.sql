-- The booked balance of each token of each wallet in each span of blocks: what came in less what went out, without withdrawn rows. A balance after a block is
-- summed from these spans and from the rows of one span, and not from every row. Bookings of a network follow one another under the lock of its
-- cursor, so nobody waits for a row here.
create function wallet_rollup_span(block_number bigint) returns bigint language sql immutable strict parallel safe as 'select block_number >> 14';

create table wallet_rollups (
  wallet_id text not null,
  network text not null,
  token text not null,
  -- Its first block is 16,384 times this number.
  span bigint not null,
  organisation_id text not null,
  environment text not null,
  raw_amount numeric not null,
  primary key (wallet_id, network, token, span)
) with (fillfactor = 80);

create function add_to_wallet_rollups() returns trigger language plpgsql as $$
begin
  insert into wallet_rollups as known (wallet_id, network, token, span, organisation_id, environment, raw_amount)
  select wallet_id, network, token, wallet_rollup_span(block_number), organisation_id, environment,
    sum(case when status = 'withdrawn' then 0 when direction = 'in' then raw_amount else -raw_amount end)
  from added group by wallet_id, network, token, wallet_rollup_span(block_number), organisation_id, environment
  order by wallet_id, network, token, wallet_rollup_span(block_number)
  on conflict (wallet_id, network, token, span) do update set raw_amount = known.raw_amount + excluded.raw_amount;
  return null;
end $$;
create trigger add_to_rollups after insert on wallet_transactions referencing new table as added for each statement
  execute function add_to_wallet_rollups();

create function change_wallet_rollups() returns trigger language plpgsql as $$
begin
  insert into wallet_rollups as known (wallet_id, network, token, span, organisation_id, environment, raw_amount)
  select given.wallet_id, given.network, given.token, given.span, given.organisation_id, given.environment, sum(given.raw_amount)
  from (values
    (old.wallet_id, old.network, old.token, wallet_rollup_span(old.block_number), old.organisation_id, old.environment,
      case when old.status = 'withdrawn' then 0 when old.direction = 'in' then -old.raw_amount else old.raw_amount end),
    (new.wallet_id, new.network, new.token, wallet_rollup_span(new.block_number), new.organisation_id, new.environment,
      case when new.status = 'withdrawn' then 0 when new.direction = 'in' then new.raw_amount else -new.raw_amount end)
  ) as given (wallet_id, network, token, span, organisation_id, environment, raw_amount)
  group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 4
  on conflict (wallet_id, network, token, span) do update set raw_amount = known.raw_amount + excluded.raw_amount;
  return null;
end $$;
-- The condition keeps confirmations and screenings from it.
create trigger change_rollups after update of status, block_number on wallet_transactions for each row
  when ((old.status = 'withdrawn') <> (new.status = 'withdrawn') or wallet_rollup_span(old.block_number) <> wallet_rollup_span(new.block_number))
  execute function change_wallet_rollups();
