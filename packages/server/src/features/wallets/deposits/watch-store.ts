import type { Address, Chain } from '@purser/protocol'
import type { Tenant } from '../../../platform/ctx.ts'
import { sql, type Tx } from '../../../platform/db/db.ts'

/** An address to be watched for a wallet, and what the wallet was made for. */
export interface Watch {
  readonly walletId: string
  readonly address: Address
  /** The name that the owner gave. */
  readonly chain: Chain
  /** The network's own name, which that name means in the wallet's environment. */
  readonly network: string
  /** Symbols. */
  readonly supportedTokens: readonly string[]
}

/** Writes watches in one statement. One that is there already is left as it is. */
export async function insertWatches(tx: Tx, tenant: Tenant, watches: readonly Watch[], since: Date): Promise<void> {
  const walletIds = watches.map(({ walletId }) => walletId)
  const chains = watches.map(({ chain }) => chain)
  const networks = watches.map(({ network }) => network)
  const addresses = watches.map(({ address }) => Buffer.from(address.slice(2), 'hex'))
  const tokens = watches.map(({ supportedTokens }) => JSON.stringify(supportedTokens))
  await tx.run(sql`
    insert into watched_addresses (wallet_id, network, chain, organisation_id, environment, address, tokens, since)
    select wallet_id, network, chain, ${tenant.organisationId}, ${tenant.environment}, address,
      array(select jsonb_array_elements_text(tokens::jsonb)), ${since}
    from unnest(${walletIds}::text[], ${networks}::text[], ${chains}::text[], ${addresses}::bytea[], ${tokens}::text[]) as given (wallet_id, network, chain, address, tokens)
    on conflict (wallet_id, network) do nothing`)
}

/** Ends every watch of a wallet. */
export async function endWatches(tx: Tx, tenant: Tenant, walletId: string, until: Date): Promise<void> {
  await tx.run(sql`
    update watched_addresses set until = ${until}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and wallet_id = ${walletId} and until is null`)
}
