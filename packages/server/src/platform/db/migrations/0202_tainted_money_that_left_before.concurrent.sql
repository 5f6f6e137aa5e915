-- The flagged and tainted money that came in, less what was there, at the places and checkpoints from before 0201. Each place has a transaction of its own, so
-- that no booking waits longer than for one place. Whoever traces money locks the cursor of its network before anything else, and so does this. A place whose
-- sums do not fit stays unknown, until it is traced again. An interrupted run begins again with the places that it has not reached.
do $$
declare
  place record;
begin
  for place in select wallet_id, network, token from tainted_places where raw_left is null order by wallet_id, network, token loop
    perform 1 from deposit_cursors where network = place.network for update;
    with sums as (
      select block_number, is_checkpoint, sum(raw_amount) over (order by block_number) as raw_amount from (
        select block_number, false as is_checkpoint, case when aml_status = 'flagged' then raw_amount else tainted_raw_amount end as raw_amount
        from wallet_transactions
        where wallet_id = place.wallet_id and network = place.network and token = place.token and direction = 'in' and status <> 'withdrawn'
          and (aml_status = 'flagged' or tainted_raw_amount > 0 or frozen_raw_amount > 0)
        union all
        select block_number, true, 0 from taint_checkpoints
        where wallet_id = place.wallet_id and network = place.network and token = place.token
      ) as parts
    )
    update taint_checkpoints c set raw_left = sums.raw_amount - c.raw_tainted from sums
    where c.wallet_id = place.wallet_id and c.network = place.network and c.token = place.token and c.raw_left is null
      and sums.is_checkpoint and c.block_number = sums.block_number and sums.raw_amount >= c.raw_tainted;
    update tainted_places p set raw_left = came.raw_amount - p.raw_frozen, left_revision = p.left_revision + 1
    from (
      select coalesce(sum(case when aml_status = 'flagged' then raw_amount else tainted_raw_amount end), 0) as raw_amount from wallet_transactions
      where wallet_id = place.wallet_id and network = place.network and token = place.token and direction = 'in' and status <> 'withdrawn'
        and (aml_status = 'flagged' or tainted_raw_amount > 0 or frozen_raw_amount > 0)
    ) as came
    where p.wallet_id = place.wallet_id and p.network = place.network and p.token = place.token and p.raw_left is null
      and came.raw_amount >= p.raw_frozen;
    commit;
  end loop;
end $$;
alter table taint_checkpoints validate constraint taint_checkpoints_raw_left_check;
alter table tainted_places validate constraint tainted_places_raw_left_check;
