import { type Address, isAddress } from './address.ts'
import { bytesToHex, type Hex, isHex } from './bytes.ts'
import { keccak256 } from './hash.ts'
import { utf8 } from './utf8.ts'

/** The first topics of the logs of a settlement (EIP-3009, ERC-20 and TIP-20). */
export const topics = {
  authorizationUsed: bytesToHex(keccak256(utf8('AuthorizationUsed(address,bytes32)'))),
  transfer: bytesToHex(keccak256(utf8('Transfer(address,address,uint256)'))),
  transferWithMemo: bytesToHex(keccak256(utf8('TransferWithMemo(address,address,uint256,bytes32)'))),
} as const

const wordPattern = /^0x[0-9a-fA-F]{64}$/

/** A log in a node's response. */
export type RawLog = { readonly topics: readonly string[]; readonly data: string }

/**
 * The ERC-20 transfer in a log, with addresses in lower case. `undefined` for any other log.
 *
 * @example
 * const account = '0x' + addressWord('0x209693bc6afc0c5328ba36faf03c514ef312287c')
 * decodeTransferLog({ topics: [topics.transfer, account, account], data: '0x' + uintWord(10_000n) }).value // 10000n
 * decodeTransferLog({ topics: [topics.authorizationUsed, account, account], data: '0x' + uintWord(10_000n) }) // undefined
 */
export function decodeTransferLog(log: RawLog): { from: Address; to: Address; value: bigint } | undefined {
  const [topic, from, to, more] = log.topics
  if (topic !== topics.transfer || more !== undefined || !wordPattern.test(log.data)) return undefined
  const sender = addressOfTopic(from)
  const recipient = addressOfTopic(to)
  return sender === undefined || recipient === undefined
    ? undefined
    : { from: sender, to: recipient, value: BigInt(log.data) }
}

/**
 * The EIP-3009 authorization that a log reports as used, in lower case. `undefined` for any other log.
 *
 * @example
 * const account = '0x' + addressWord('0x209693bc6afc0c5328ba36faf03c514ef312287c')
 * const nonce = '0x' + '11'.repeat(32)
 * decodeAuthorizationUsedLog({ topics: [topics.authorizationUsed, account, nonce], data: '0x' }).authorizer // '0x209693bc6afc0c5328ba36faf03c514ef312287c'
 * decodeAuthorizationUsedLog({ topics: [topics.transfer, account, nonce], data: '0x' }) // undefined
 */
export function decodeAuthorizationUsedLog(log: RawLog): { authorizer: Address; nonce: Hex } | undefined {
  const [topic, account, nonce, more] = log.topics
  if (topic !== topics.authorizationUsed || more !== undefined || nonce === undefined) return undefined
  const authorizer = addressOfTopic(account)
  const lower = nonce.toLowerCase()
  if (authorizer === undefined || lower.length !== 66 || !isHex(lower)) return undefined
  return { authorizer, nonce: lower }
}

/**
 * The TIP-20 transfer with memo in a log, in lower case. `undefined` for any other log.
 *
 * @example
 * const account = '0x' + addressWord('0x209693bc6afc0c5328ba36faf03c514ef312287c')
 * const memo = '0x' + '11'.repeat(32)
 * decodeTransferWithMemoLog({ topics: [topics.transferWithMemo, account, account, memo], data: '0x' + uintWord(10_000n) }).amount // 10000n
 */
export function decodeTransferWithMemoLog(
  log: RawLog,
): { from: Address; to: Address; amount: bigint; memo: Hex } | undefined {
  const [topic, from, to, memo, more] = log.topics
  if (topic !== topics.transferWithMemo || more !== undefined || !wordPattern.test(log.data)) return undefined
  const sender = addressOfTopic(from)
  const recipient = addressOfTopic(to)
  const lower = memo?.toLowerCase() ?? ''
  if (sender === undefined || recipient === undefined || !wordPattern.test(lower) || !isHex(lower)) return undefined
  return { from: sender, to: recipient, amount: BigInt(log.data), memo: lower }
}

function addressOfTopic(topic: string | undefined): Address | undefined {
  if (topic === undefined || topic.length !== 66 || !topic.startsWith(`0x${'0'.repeat(24)}`)) return undefined
  const address = `0x${topic.slice(26).toLowerCase()}`
  return isAddress(address) ? address : undefined
}
