import type { Address } from '@purser/protocol'
import type { WalletSigner } from '../../../custody/signer.ts'
import type { WalletKeys } from '../../../custody/wallet-keys.ts'
import type { Db } from '../../../platform/db/db.ts'
import { findKeyOfAddress } from './source-store.ts'

/** Finds the signer of an address of a managed wallet or child, of any tenant: for senders of their stored transactions. */
export function createAccountSigners(deps: {
  readonly db: Db
  readonly walletKeys: WalletKeys
}): (account: Address) => Promise<WalletSigner | undefined> {
  return async (address) => {
    const key = await findKeyOfAddress(deps.db, address)
    if (key === undefined) return undefined
    const { organisationId, environment, account, index } = key
    return deps.walletKeys.signer({ organisationId, environment }, { account, index, address })
  }
}
