import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'

const Raw = z.string().transform((text) => BigInt(text))

/** A token of a managed wallet on a network; the token as it is stored. */
export interface Place {
  readonly tenant: Tenant
  readonly walletId: string
  readonly network: string
  readonly token: string
}

const PlaceRow = z.object({
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string(),
  network: z.string(),
  token: z.string(),
})

function placeOf({ walletId, network, token, ...tenant }: z.output<typeof PlaceRow>): Place {
  return { tenant, walletId, network, token }
}

/** Those of the places, each once, that ever received flagged or tainted money. A wallet that the customer holds is none: nothing freezes there. */
export async function listTaintedPlaces(tx: Tx, places: readonly Place[]): Promise<Place[]> {
  const own = places.filter(({ walletId }) => !walletId.startsWith('byw_'))
  if (own.length === 0) return []
  const rows = await tx.many(
    PlaceRow,
    sql`
    select distinct organisation_id, environment, wallet_id, network, token
    from unnest(${own.map(({ tenant }) => tenant.organisationId)}::text[], ${own.map(({ tenant }) => tenant.environment)}::text[],
      ${own.map(({ walletId }) => walletId)}::text[], ${own.map(({ network }) => network)}::text[], ${own.map(({ token }) => token)}::text[])
      as place (organisation_id, environment, wallet_id, network, token)
    where exists (select from wallet_transactions w where w.organisation_id = place.organisation_id and w.environment = place.environment
      and w.wallet_id = place.wallet_id and w.network = place.network and w.token = place.token and direction = 'in'
      and (aml_status = 'flagged' or tainted_raw_amount > 0 or frozen_raw_amount > 0))`,
  )
  return rows.map(placeOf)
}

const LedgerRow = z.object({
  id: z.string(),
  direction: z.enum(['in', 'out']),
  rawAmount: Raw,
  /** What of an incoming row is flagged or tainted. */
  rawTaint: Raw,
  txHash: z.string(),
  logIndex: z.number(),
})
export type LedgerRow = z.output<typeof LedgerRow>

/** What moved to and from a place, in the order of the chain. All that came before the first flagged money is one row without an id. */
export function listLedger(tx: Tx, { tenant, walletId, network, token }: Place): Promise<LedgerRow[]> {
  return tx.many(
    LedgerRow,
    sql`
    with ledger as not materialized (
      select * from wallet_transactions where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
        and wallet_id = ${walletId} and network = ${network} and token = ${token} and status <> 'withdrawn'
    ), first as materialized (
      select min(block_number) as block_number from ledger where direction = 'in' and (aml_status = 'flagged' or tainted_raw_amount > 0)
    )
    select '' as id, 'in' as direction, greatest(coalesce(sum(case direction when 'in' then raw_amount else -raw_amount end), 0), 0)::text as raw_amount,
      '0' as raw_taint, '' as tx_hash, -1 as log_index, -1::bigint as block_number
    from ledger, first where ledger.block_number < first.block_number
    union all
    select id, direction, raw_amount::text, (case when direction = 'out' then 0 when aml_status = 'flagged' then raw_amount else tainted_raw_amount end)::text,
      tx_hash, log_index, ledger.block_number
    from ledger, first where first.block_number is null or ledger.block_number >= first.block_number
    order by block_number, log_index, direction`,
  )
}

/** Writes what stays frozen of each incoming row of the place, and nothing for all others. */
export async function updateFrozen(
  tx: Tx,
  { tenant, walletId, network, token }: Place,
  frozen: ReadonlyMap<string, bigint>,
): Promise<void> {
  const [ids, amounts] = [[...frozen.keys()], [...frozen.values()].map(String)]
  await tx.run(sql`
    update wallet_transactions w set frozen_raw_amount = given.raw
    from (
      select w.id, coalesce(given.raw, 0) as raw from wallet_transactions w
      left join unnest(${ids}::text[], ${amounts}::numeric[]) as given (id, raw) using (id)
      where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and wallet_id = ${walletId}
        and network = ${network} and token = ${token} and direction = 'in' and (frozen_raw_amount > 0 or w.id = any(${ids}::text[]))
    ) as given where w.id = given.id and w.frozen_raw_amount <> given.raw`)
}

/** What of an outgoing row was tainted. */
export interface MovedTaint {
  readonly txHash: string
  readonly logIndex: number
  readonly rawTaint: bigint
}

/** Writes what of these transfers was tainted to the wallets of the organisation that received them; answers where that changed something. */
export async function updateTaintedReceivers(
  tx: Tx,
  { tenant, network, token }: Place,
  moved: readonly MovedTaint[],
): Promise<Place[]> {
  if (moved.length === 0) return []
  const rows = await tx.many(
    PlaceRow,
    sql`
    update wallet_transactions w set tainted_raw_amount = least(given.raw, w.raw_amount)
    from unnest(${moved.map(({ txHash }) => txHash)}::text[], ${moved.map(({ logIndex }) => logIndex)}::integer[],
      ${moved.map(({ rawTaint }) => rawTaint.toString())}::numeric[]) as given (tx_hash, log_index, raw)
    where w.network = ${network} and w.tx_hash = given.tx_hash and w.log_index = given.log_index and w.token = ${token} and w.direction = 'in'
      and w.organisation_id = ${tenant.organisationId} and w.environment = ${tenant.environment} and w.wallet_id not like 'byw\\_%'
      and w.status <> 'withdrawn' and w.tainted_raw_amount <> least(given.raw, w.raw_amount)
    returning w.organisation_id, w.environment, w.wallet_id, w.network, w.token`,
  )
  return rows.map(placeOf)
}
