import fc from 'fast-check'
import { encodeAbiParameters, encodeEventTopics, encodeFunctionData } from 'viem'
import { Abis, Addresses } from 'viem/tempo'
import { expect, test } from 'vitest'
import { bytesToHex, type Hex, uint256Max } from './bytes.ts'
import { decodeTransferLog, decodeTransferWithMemoLog, topics } from './evm-logs.ts'
import { decodeTip20Transfer, encodeGetNonce, encodeTransferWithMemo, tempoNonceManager } from './tip20.ts'

const abi = Abis.tip20
const bytesOf = (size: number) => fc.uint8Array({ minLength: size, maxLength: size }).map(bytesToHex)
const address = bytesOf(20)
const bytes32 = bytesOf(32)
const uint256 = fc.bigInt({ min: 0n, max: uint256Max })
const to = `0x${'ab'.repeat(20)}` as const
const memo = `0x${'cd'.repeat(32)}` as const
const call = encodeTransferWithMemo(to, 10_000n, memo)
const plain = encodeFunctionData({ abi, functionName: 'transfer', args: [to, 10_000n] })

test('a transfer with a memo is encoded as viem encodes it, and both transfers are read back', () => {
  fc.assert(
    fc.property(address, uint256, bytes32, (recipient, amount, note) => {
      const data = encodeTransferWithMemo(recipient, amount, note)
      const args = [recipient, amount, note] as const
      expect(data).toBe(encodeFunctionData({ abi, functionName: 'transferWithMemo', args }))
      expect(decodeTip20Transfer(data)).toEqual({ to: recipient, amount, memo: note })
      const transfer = encodeFunctionData({ abi, functionName: 'transfer', args: [recipient, amount] })
      expect(decodeTip20Transfer(transfer)).toEqual({ to: recipient, amount })
      expect(decodeTip20Transfer(`0x${data.slice(2).toUpperCase()}`)).toEqual({ to: recipient, amount, memo: note })
    }),
  )
})

test('a keyed nonce is read as viem reads it, from the contract that viem names', () => {
  expect(tempoNonceManager).toBe(Addresses.nonceManager)
  fc.assert(
    fc.property(address, uint256, (account, nonceKey) => {
      const args = [account, nonceKey] as const
      expect(encodeGetNonce(account, nonceKey)).toBe(
        encodeFunctionData({ abi: Abis.nonce, functionName: 'getNonce', args }),
      )
    }),
  )
})

test('a transfer to what is not an address, of what is not an amount or with half a memo is not encoded', () => {
  expect(() => encodeTransferWithMemo('0x12', 1n, memo)).toThrow(RangeError)
  expect(() => encodeTransferWithMemo(to, -1n, memo)).toThrow(RangeError)
  expect(() => encodeTransferWithMemo(to, uint256Max + 1n, memo)).toThrow(RangeError)
  expect(() => encodeTransferWithMemo(to, 1n, '0xcd')).toThrow(RangeError)
})

test('call data that is longer, shorter, of another function or with dirty bytes before the address is not a transfer', () => {
  const approve = encodeFunctionData({ abi, functionName: 'approve', args: [to, 10_000n] })
  const wrong: readonly Hex[] = [
    '0x',
    approve,
    `${call}00`,
    `${plain}00`,
    `0x${call.slice(2, -2)}`,
    `0x${call.slice(2, -1)}`,
    `0x${call.slice(2, -1)}g`,
    `0x${plain.slice(2, 10)}${call.slice(10)}`,
    `0x${call.slice(2, 10)}${plain.slice(10)}`,
    `0x${call.slice(2, 10)}01${call.slice(12)}`,
    `0x${plain.slice(2, 33)}1${plain.slice(34)}`,
  ]
  for (const data of wrong) expect(decodeTip20Transfer(data), data).toBeUndefined()
})

test('the log of a transfer with a memo is read as the token writes it, and no other log', () => {
  fc.assert(
    fc.property(address, address, uint256, bytes32, (from, recipient, amount, note) => {
      const args = { from, to: recipient, memo: note }
      const written = encodeEventTopics({ abi, eventName: 'TransferWithMemo', args })
      const log = { topics: written.map(String), data: encodeAbiParameters([{ type: 'uint256' }], [amount]) }
      expect(log.topics[0]).toBe(topics.transferWithMemo)
      expect(decodeTransferWithMemoLog(log)).toEqual({ from, to: recipient, amount, memo: note })
      expect(decodeTransferLog(log)).toBeUndefined()
      expect(decodeTransferWithMemoLog({ ...log, data: `${log.data}00` })).toBeUndefined()
      expect(decodeTransferWithMemoLog({ ...log, data: '0x' })).toBeUndefined()
      expect(decodeTransferWithMemoLog({ ...log, topics: [...log.topics, note] })).toBeUndefined()
      expect(decodeTransferWithMemoLog({ ...log, topics: log.topics.slice(0, 3) })).toBeUndefined()
      expect(decodeTransferWithMemoLog({ ...log, topics: [topics.transfer, ...log.topics.slice(1)] })).toBeUndefined()
    }),
  )
})

test('a memo that is not 32 bytes, or an account with dirty bytes before it, makes no log of a transfer', () => {
  const word = `0x${'0'.repeat(24)}${'ab'.repeat(20)}`
  const log = { topics: [topics.transferWithMemo, word, word, memo], data: `0x${'0'.repeat(63)}1` }
  expect(decodeTransferWithMemoLog(log)?.amount).toBe(1n)
  for (const [at, topic] of [
    [1, `0x1${word.slice(3)}`],
    [2, `0x${'ab'.repeat(20)}`],
    [3, '0xcd'],
    [3, `0x${'zz'.repeat(32)}`],
  ] as const)
    expect(decodeTransferWithMemoLog({ ...log, topics: log.topics.with(at, topic) }), topic).toBeUndefined()
})
