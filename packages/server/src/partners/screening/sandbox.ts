import type { Address } from '@purser/protocol'
import { bundledList } from './bundled-list.ts'
import type { Screened } from './port.ts'

/** Always flagged by the sandbox screening: account 8 of the well-known mnemonic "test test test … junk". */
export const sandboxFlaggedAddress: Address = '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f'
/** Always pending: account 9 of the same mnemonic. */
export const sandboxPendingAddress: Address = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'

const bundled: ReadonlySet<string> = new Set(bundledList.addresses)

/**
 * The sandbox's result for an address in lower case, for test keys: clear, except for the two test addresses and addresses on the current list, the
 * bundled list or the oracle.
 */
export function sandboxVerdict(address: string, evidence: Screened): Screened {
  if (evidence.result === 'flagged') return evidence
  if (bundled.has(address)) return { ...evidence, result: 'flagged', reason: 'listed' }
  if (address === sandboxFlaggedAddress.toLowerCase()) return { ...evidence, result: 'flagged', reason: 'sandbox' }
  if (address === sandboxPendingAddress.toLowerCase())
    return { ...evidence, result: 'pending', reason: 'sandbox', simulatesNoSource: true }
  return { ...evidence, result: 'clear', reason: 'sandbox' }
}
