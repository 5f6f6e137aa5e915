import fc from 'fast-check'
import {
  decodeFunctionData,
  encodeAbiParameters,
  encodeErrorResult,
  encodeFunctionData,
  encodeFunctionResult,
  multicall3Abi,
  parseAbi,
  toEventSelector,
  toFunctionSelector,
} from 'viem'
import { expect, test } from 'vitest'
import { bytesToHex, type Hex, uint256Max } from './bytes.ts'
import {
  AbiMalformed,
  decodeAggregate3,
  decodeBool,
  decodeBytes32,
  decodeRevertReason,
  decodeString,
  decodeUint256,
  encodeAggregate3,
  encodeAuthorizationState,
  encodeBalanceOf,
  encodeIsValidSignature,
  encodeTransferWithAuthorization,
  multicall3Address,
  tokenReads,
} from './evm-abi.ts'
import { decodeAuthorizationUsedLog, decodeTransferLog, topics } from './evm-logs.ts'

const abi = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
  'function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)',
  'function name() view returns (string)',
  'error Error(string)',
  'error Panic(uint256)',
])
const bytesOf = (size: number) => fc.uint8Array({ minLength: size, maxLength: size }).map(bytesToHex)
const address = bytesOf(20)
const bytes32 = bytesOf(32)
const uint256 = fc.bigInt({ min: 0n, max: uint256Max })
const bytes = fc.uint8Array({ maxLength: 300 }).map(bytesToHex)
const authorization = fc.record({
  from: address,
  to: address,
  value: uint256,
  validAfter: uint256,
  validBefore: uint256,
  nonce: bytes32,
})
const results = fc.array(fc.record({ success: fc.boolean(), returnData: bytes }), { maxLength: 20 })

test('a transfer by authorization is encoded as viem encodes it, in both forms', () => {
  fc.assert(
    fc.property(
      authorization,
      fc.constantFrom(27 as const, 28 as const),
      bytes32,
      bytes32,
      bytes,
      (message, v, r, s, signature) => {
        const { from, to, value, validAfter, validBefore, nonce } = message
        const args = [from, to, value, validAfter, validBefore, nonce] as const
        const functionName = 'transferWithAuthorization'
        expect(encodeTransferWithAuthorization(message, { kind: 'ecdsa', v, r, s })).toBe(
          encodeFunctionData({ abi, functionName, args: [...args, v, r, s] }),
        )
        expect(encodeTransferWithAuthorization(message, { kind: 'bytes', signature })).toBe(
          encodeFunctionData({ abi, functionName, args: [...args, signature] }),
        )
      },
    ),
  )
})

test('the questions to a token and to a contract account are encoded as viem encodes them', () => {
  fc.assert(
    fc.property(address, bytes32, bytes, (account, nonce, signature) => {
      expect(encodeBalanceOf(account)).toBe(encodeFunctionData({ abi, functionName: 'balanceOf', args: [account] }))
      expect(encodeAuthorizationState(account, nonce)).toBe(
        encodeFunctionData({ abi, functionName: 'authorizationState', args: [account, nonce] }),
      )
      expect(encodeIsValidSignature(nonce, signature)).toBe(
        encodeFunctionData({ abi, functionName: 'isValidSignature', args: [nonce, signature] }),
      )
    }),
  )
  expect(tokenReads.domainSeparator).toBe('0x3644e515')
  expect([tokenReads.name, tokenReads.version, tokenReads.decimals]).toEqual(
    ['name()', 'version()', 'decimals()'].map((text) => toFunctionSelector(text)),
  )
})

test('a batch of calls is encoded as viem encodes it', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ target: address, allowFailure: fc.boolean(), callData: bytes }), { maxLength: 20 }),
      (calls) => {
        expect(encodeAggregate3(calls)).toBe(
          encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args: [calls] }),
        )
        expect(decodeFunctionData({ abi: multicall3Abi, data: encodeAggregate3(calls) }).functionName).toBe(
          'aggregate3',
        )
      },
    ),
  )
  expect(multicall3Address).toBe('0xcA11bde05977b3631167028862bE2a173976CA11')
})

test('the results of a batch are those that the contract returned', () => {
  fc.assert(
    fc.property(results, (expected) => {
      const data = encodeFunctionResult({ abi: multicall3Abi, functionName: 'aggregate3', result: expected })
      expect(decodeAggregate3(data, expected.length)).toEqual(expected)
    }),
  )
})

test('an answer to another number of calls is not taken', () => {
  const data = encodeFunctionResult({
    abi: multicall3Abi,
    functionName: 'aggregate3',
    result: [{ success: true, returnData: '0x01' }],
  })
  expect(() => decodeAggregate3(data, 0)).toThrow(AbiMalformed)
  expect(() => decodeAggregate3(data, 2)).toThrow(AbiMalformed)
})

test('an answer in which a node changed the layout is refused; changing the content alone stays within one result', () => {
  fc.assert(
    fc.property(
      results.filter((list) => list.length > 0),
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      (list, position, flip) => {
        const data = encodeFunctionResult({ abi: multicall3Abi, functionName: 'aggregate3', result: list })
        const lie = flipped(data, position % (data.length / 2 - 1), flip)
        const read = readOrMalformed(lie, list.length)
        if (read === 'malformed') return
        expect(read).toHaveLength(list.length)
        expect(
          read.filter((result, i) => JSON.stringify(result) !== JSON.stringify(list[i])).length,
        ).toBeLessThanOrEqual(1)
      },
    ),
    { numRuns: 2_000 },
  )
})

test('an answer that is cut short, too long, not hex or absurd is a typed fault and nothing else', () => {
  const word = (value: bigint) => value.toString(16).padStart(64, '0')
  const data = encodeFunctionResult({
    abi: multicall3Abi,
    functionName: 'aggregate3',
    result: [{ success: true, returnData: '0x0102' }],
  })
  const lies: Hex[] = [
    '0x',
    '0x0',
    '0xzz',
    `0x${word(32n)}`,
    `0x${word(32n)}${word(uint256Max)}`,
    `0x${word(uint256Max)}${word(1n)}`,
    `${data}00`,
    `${data}${word(0n)}`,
    `0x${data.slice(2, -64)}`,
    `0x${word(32n)}${word(1n)}${word(32n)}${word(2n)}${word(64n)}${word(0n)}`,
  ]
  for (const lie of lies) expect(() => decodeAggregate3(lie, 1), lie).toThrow(AbiMalformed)
  for (const lie of ['0x', '0x01', `0x${word(1n)}${word(1n)}`, '0xgg'] as const) {
    expect(() => decodeUint256(lie), lie).toThrow(AbiMalformed)
    expect(() => decodeBool(lie), lie).toThrow(AbiMalformed)
    expect(() => decodeBytes32(lie), lie).toThrow(AbiMalformed)
    expect(() => decodeString(lie), lie).toThrow(AbiMalformed)
  }
  expect(() => decodeBool(`0x${word(2n)}`)).toThrow(AbiMalformed)
})

test('single values come back as viem encoded them', () => {
  fc.assert(
    fc.property(uint256, fc.boolean(), fc.string({ unit: 'grapheme' }), (number, flag, text) => {
      expect(decodeUint256(encodeAbiParameters([{ type: 'uint256' }], [number]))).toBe(number)
      expect(decodeBool(encodeAbiParameters([{ type: 'bool' }], [flag]))).toBe(flag)
      expect(decodeString(encodeFunctionResult({ abi, functionName: 'name', result: text }))).toBe(text)
    }),
  )
})

test('a revert says why, and nonsense in its place says nothing', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), (text) => {
      expect(decodeRevertReason(encodeErrorResult({ abi, errorName: 'Error', args: [text] }))).toBe(text)
    }),
  )
  expect(decodeRevertReason(encodeErrorResult({ abi, errorName: 'Panic', args: [17n] }))).toBe('Panic(0x11)')
  for (const data of [
    '0x',
    '0x08c379a0',
    '0x08c379a0ff',
    '0x12345678',
    `0x08c379a0${'f'.repeat(128)}`,
    `0x08c379a0${'0'.repeat(100_000)}`,
  ] as const) {
    expect(decodeRevertReason(data), data.slice(0, 20)).toBeUndefined()
  }
})

test('the logs of a settlement are recognized, and no other log', () => {
  expect(topics.transfer).toBe(toEventSelector('Transfer(address,address,uint256)'))
  expect(topics.authorizationUsed).toBe('0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5')
  fc.assert(
    fc.property(address, address, uint256, bytes32, (from, to, value, nonce) => {
      const word = (account: Hex) => encodeAbiParameters([{ type: 'address' }], [account])
      const data = encodeAbiParameters([{ type: 'uint256' }], [value])
      const transfer = { topics: [topics.transfer, word(from), word(to)], data }
      expect(decodeTransferLog(transfer)).toEqual({ from, to, value })
      expect(decodeTransferLog({ ...transfer, data: `${data}00` })).toBeUndefined()
      expect(decodeTransferLog({ ...transfer, topics: [...transfer.topics, nonce] })).toBeUndefined()
      expect(decodeTransferLog({ ...transfer, topics: transfer.topics.slice(0, 2) })).toBeUndefined()
      const used = { topics: [topics.authorizationUsed, word(from), nonce], data: '0x' }
      expect(decodeAuthorizationUsedLog(used)).toEqual({ authorizer: from, nonce })
      expect(decodeAuthorizationUsedLog(transfer)).toBeUndefined()
    }),
  )
})

function flipped(data: Hex, at: number, flip: number): Hex {
  const bytesAt = 2 + at * 2
  const byte = Number.parseInt(data.slice(bytesAt, bytesAt + 2), 16) ^ flip
  return `0x${data.slice(2, bytesAt)}${byte.toString(16).padStart(2, '0')}${data.slice(bytesAt + 2)}`
}

function readOrMalformed(data: Hex, count: number) {
  try {
    return decodeAggregate3(data, count)
  } catch (error) {
    if (error instanceof AbiMalformed) return 'malformed'
    throw error
  }
}
