import { z } from 'zod'
import { type Queryable, sql } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { ChainName } from '../../chains/index.ts'
import { type PlaceQuestion, StoredAddress, type WalletQuestion } from '../store.ts'

/** A master wallet or a child of one, with the fields that a payment needs; a child accepts what its master accepts. */
export const ManagedReceiver = z.object({
  id: z.union([id('mwt'), id('cad')]),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  address: StoredAddress,
  chain: ChainName,
  network: z.string(),
  supportedTokens: z.array(z.string()),
  retiredAt: z.date().nullable(),
})
export type ManagedReceiver = z.output<typeof ManagedReceiver>

const masters = sql`select id, organisation_id, environment, address, chain, network, supported_tokens, retired_at from master_wallets`
const children = sql`
  select c.id, c.organisation_id, c.environment, c.address, chain, network, supported_tokens, retired_at
  from child_addresses c join master_wallets m on m.id = master_wallet_id`

/** The managed wallets of several queries in one statement; each is found only for its own tenant. */
export function listRequestedManaged(db: Queryable, questions: readonly WalletQuestion[]): Promise<ManagedReceiver[]> {
  const requested = sql`select * from unnest(${questions.map(({ tenant }) => tenant.organisationId)}::text[],
    ${questions.map(({ tenant }) => tenant.environment)}::text[], ${questions.map(({ walletId }) => walletId)}::text[])`
  return db.many(
    ManagedReceiver,
    sql`
    ${masters} where (organisation_id, environment, id) in (${requested})
    union all ${children} where (c.organisation_id, c.environment, c.id) in (${requested})`,
  )
}

/** The managed wallets at several accounts in one statement; each is found only for its own tenant. */
export function listManagedAt(db: Queryable, places: readonly PlaceQuestion[]): Promise<ManagedReceiver[]> {
  const requested = sql`select * from unnest(${places.map(({ tenant }) => tenant.organisationId)}::text[],
    ${places.map(({ tenant }) => tenant.environment)}::text[], ${places.map(({ address }) => address)}::text[],
    ${places.map(({ network }) => network)}::text[])`
  return db.many(
    ManagedReceiver,
    sql`
    ${masters} where (organisation_id, environment, address, network) in (${requested})
    union all ${children} where (c.organisation_id, c.environment, c.address, network) in (${requested})`,
  )
}
