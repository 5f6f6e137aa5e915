import type { OrganisationId } from '../../../platform/ids.ts'
import { coinDustOf } from '../managed/retire.ts'
import type { Ctx } from '../ports.ts'
import { findLegacyWallet, type LegacyWalletRow } from './store.ts'

/**
 * Returns the live legacy wallet of the organisation if it has native coin, as of the latest block, that is worth more than moving it, on any network that
 * the deployment has a node for. Throws `chain-unavailable` while one of them cannot be read: whoever asks would lose the coin.
 */
export async function legacyWalletWithCoin(
  { chains, db }: Pick<Ctx, 'chains' | 'db'>,
  organisationId: OrganisationId,
): Promise<LegacyWalletRow['id'] | undefined> {
  const wallet = await findLegacyWallet(db, { organisationId, environment: 'live' })
  if (wallet === undefined) return undefined
  const read = chains.configured.filter(({ isTestnet, nativeCoin }) => !isTestnet && nativeCoin !== null)
  const found = await Promise.all(
    read.map(async (network) => {
      const chain = chains.on(network)
      const [dust, [holding]] = await Promise.all([
        coinDustOf(network, chain),
        chain.agreedHoldings([{ account: wallet.address, tokens: [] }]),
      ])
      return (holding?.native ?? 0n) > dust
    }),
  )
  return found.includes(true) ? wallet.id : undefined
}
