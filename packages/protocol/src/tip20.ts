import { type Address, isAddress } from './address.ts'
import { type Hex, isHex } from './bytes.ts'
import { addressWord, bytes32Word, selectorOf, uintWord } from './evm-abi.ts'

/** A TIP-20 transfer. `memo` is set if the call is `transferWithMemo`. */
export type Tip20Transfer = { readonly to: Address; readonly amount: bigint; readonly memo?: Hex | undefined }

const transferSelector = selectorOf('transfer(address,uint256)')
const transferWithMemoSelector = selectorOf('transferWithMemo(address,uint256,bytes32)')
const getNonceSelector = selectorOf('getNonce(address,uint256)')
const selectorLength = 10

/**
 * Tempo's contract for nonces under keys other than zero (Tempo Transaction specification, "Nonces"). Every Tempo chain
 * has it.
 */
export const tempoNonceManager: Address = '0x4e4F4E4345000000000000000000000000000000'

/** Tempo's fee manager. The payer of each transaction sends it the fee, in the token that the payer chose. */
export const tempoFeeManager: Address = '0xfeec000000000000000000000000000000000000'
const wordDigits = 64

/**
 * Call data of TIP-20 `transferWithMemo`; the amount in the token's smallest unit, the memo 32 bytes.
 *
 * @example
 * encodeTransferWithMemo('0x036CbD53842c5426634e7929541eC2318f3dCF7e', 1n, '0x' + '00'.repeat(32)).slice(0, 10) // '0x95777d59'
 */
export function encodeTransferWithMemo(to: Address, amount: bigint, memo: Hex): Hex {
  return `${transferWithMemoSelector}${addressWord(to)}${uintWord(amount)}${bytes32Word(memo)}`
}

/**
 * Call data to query the nonce manager for the next nonce of an account under a key other than zero.
 *
 * @example
 * encodeGetNonce('0x209693bc6afc0c5328ba36faf03c514ef312287c', 1n) // '0x89535803000000000000000000000000209693bc6afc0c5328ba36faf03c514ef312287c0000000000000000000000000000000000000000000000000000000000000001'
 */
export function encodeGetNonce(account: Address, nonceKey: bigint): Hex {
  return `${getNonceSelector}${addressWord(account)}${uintWord(nonceKey)}`
}

/**
 * Decodes call data of a TIP-20 `transfer` or `transferWithMemo`. Its hex is returned in lower case. Returns
 * `undefined` for any other call, and if bytes are missing or left over, because another reader could interpret extra
 * bytes differently.
 *
 * @example
 * decodeTip20Transfer('0x') // undefined
 */
export function decodeTip20Transfer(data: Hex): Tip20Transfer | undefined {
  if (!isHex(data)) return undefined
  const lower = data.toLowerCase()
  const hasMemo = lower.startsWith(transferWithMemoSelector)
  if (!hasMemo && !lower.startsWith(transferSelector)) return undefined
  if (lower.length !== selectorLength + wordDigits * (hasMemo ? 3 : 2)) return undefined
  const to = addressOfWord(wordAt(lower, 0))
  if (to === undefined) return undefined
  const transfer = { to, amount: BigInt(`0x${wordAt(lower, 1)}`) }
  return hasMemo ? { ...transfer, memo: `0x${wordAt(lower, 2)}` } : transfer
}

function wordAt(data: string, index: number): string {
  const from = selectorLength + index * wordDigits
  return data.slice(from, from + wordDigits)
}

function addressOfWord(word: string): Address | undefined {
  const address = `0x${word.slice(24)}`
  return word.startsWith('0'.repeat(24)) && isAddress(address) ? address : undefined
}
