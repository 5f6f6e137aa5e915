-- Wallet transactions from before 0187, for some wallets in each transaction, so that no booking waits longer than one of them takes. What a span has already is
-- subtracted in the same snapshot: an interrupted run begins again and adds nothing twice. Bookings lock the cursor of their network before anything else, so
-- that with the same locks neither waits for the other in a circle.
do $$
declare
  done text := '';
  upto text;
begin
  loop
    select max(wallet_id) into upto from (
      select distinct wallet_id from wallet_transactions where wallet_id > done and status <> 'withdrawn' order by wallet_id limit 200
    ) as next_wallets;
    exit when upto is null;
    perform 1 from deposit_cursors order by network for update;
    with missing as materialized (
      select wallet_id, network, token, span, organisation_id, environment, sum(raw_amount) as raw_amount
      from (
        select wallet_id, network, token, wallet_rollup_span(block_number) as span, organisation_id, environment,
          case direction when 'in' then raw_amount else -raw_amount end as raw_amount
        from wallet_transactions where wallet_id > done and wallet_id <= upto and status <> 'withdrawn'
        union all
        select wallet_id, network, token, span, organisation_id, environment, -raw_amount
        from wallet_rollups where wallet_id > done and wallet_id <= upto
      ) as parts
      group by wallet_id, network, token, span, organisation_id, environment
    )
    insert into wallet_rollups as known (wallet_id, network, token, span, organisation_id, environment, raw_amount)
    select wallet_id, network, token, span, organisation_id, environment, raw_amount from missing
    order by wallet_id, network, token, span
    on conflict (wallet_id, network, token, span) do update set raw_amount = known.raw_amount + excluded.raw_amount;
    commit;
    done := upto;
  end loop;
end $$;
