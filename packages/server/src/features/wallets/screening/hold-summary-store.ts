import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql } from '../../../platform/db/db.ts'
import { ChainName } from '../../chains/index.ts'
import { bookedUpTo } from '../deposits/rollup-store.ts'

const HoldSummaryRow = z.object({
  walletId: z.string(),
  masterWalletId: z.string().nullable(),
  name: z.string().nullable(),
  /** The wallet's own chain, and the network that it means. */
  walletChain: ChainName,
  walletNetwork: z.string(),
  /** The network of the money: managed wallets are booked on every network. */
  network: z.string(),
  token: z.string(),
  unscreened: StoredBigInt,
  frozen: StoredBigInt,
  wallets: z.bigint(),
  isWhole: z.boolean(),
})
export type HoldSummaryRow = z.output<typeof HoldSummaryRow>

const booked = bookedUpTo({
  walletId: sql`o.wallet_id`,
  network: sql`o.network`,
  token: sql`o.token`,
  block: sql`o.block_number`,
})

/**
 * Returns what is on hold at the tenant's managed wallets and child addresses, by wallet and token, the newest wallets first. It reads at most
 * `rowsMax` deposits, `rowsMax` frozen places and `rowsMax` opening amounts; `isWhole` is false if there are more. Each row has the number of wallets of all.
 */
export function listHolds(
  db: Queryable,
  tenant: Tenant,
  { rowsMax, assetsMax }: { readonly rowsMax: number; readonly assetsMax: number },
): Promise<HoldSummaryRow[]> {
  // The customer's own wallets, whose money the service cannot move, begin with byw_ and are below.
  const own = (condition: Sql): Sql => sql`
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and wallet_id >= 'cad_' and ${condition}
    order by wallet_id desc limit ${rowsMax + 1}`
  return db.many(
    HoldSummaryRow,
    sql`
    with deposits as materialized (
      select wallet_id, network, token, raw_amount - frozen_raw_amount as unscreened, 0::numeric as frozen from wallet_transactions
      ${own(sql`direction = 'in' and status <> 'withdrawn' and aml_status = 'pending' and on_hold`)}
    ), frozen as materialized (
      select wallet_id, network, token, 0::numeric as unscreened, raw_frozen as frozen from tainted_places
      ${own(sql`raw_frozen > 0`)}
    ), openings as materialized (
      select wallet_id, network, token, greatest(0, raw_amount - ${booked}) as unscreened, 0::numeric as frozen from opening_amounts o
      ${own(sql`raw_amount > 0`)}
    ), on_hold as materialized (
      select wallet_id, network, lower(token) as token, sum(unscreened) as unscreened, sum(frozen) as frozen
      from (select * from deposits union all select * from frozen union all select * from openings) as found
      group by wallet_id, network, lower(token) having sum(unscreened) > 0 or sum(frozen) > 0
    )
    select on_hold.wallet_id, child.master_wallet_id, case when child.id is null then wallet.name else child.name end as name, wallet.chain as wallet_chain,
      wallet.network as wallet_network, on_hold.network, on_hold.token, unscreened::text, frozen::text, (select count(distinct wallet_id) from on_hold) as wallets,
      (select count(*) from deposits) <= ${rowsMax} and (select count(*) from frozen) <= ${rowsMax} and (select count(*) from openings) <= ${rowsMax}
        as is_whole
    from on_hold left join child_addresses child on child.id = on_hold.wallet_id
    join master_wallets wallet on wallet.id = coalesce(child.master_wallet_id, on_hold.wallet_id)
    order by on_hold.wallet_id desc, on_hold.network, on_hold.token limit ${assetsMax}`,
  )
}
