import {
  PERMIT2_ADDRESS,
  permit2WitnessTypes,
  resetAssetContractCache,
  toClientEvmSigner,
  uptoPermit2WitnessTypes,
  x402ExactPermit2ProxyABI,
  x402ExactPermit2ProxyAddress,
  x402UptoPermit2ProxyABI,
  x402UptoPermit2ProxyAddress,
} from '@x402/evm'
import { ExactEvmScheme as ExactClient } from '@x402/evm/exact/client'
import { ExactEvmScheme as ExactFacilitator } from '@x402/evm/exact/facilitator'
import { UptoEvmScheme as UptoClient } from '@x402/evm/upto/client'
import { UptoEvmScheme as UptoFacilitator } from '@x402/evm/upto/facilitator'
import { encodeErrorResult, encodeFunctionData, erc20Abi, hashTypedData, parseAbi } from 'viem'
import { expect, test } from 'vitest'
import { expected, must, network, payer, payTo, recover, stranger, token } from '../../test/signed-payment.ts'
import { bytesToHex, type Hex, hexToBytes } from '../bytes.ts'
import { keccak256 } from '../hash.ts'
import type { PaymentRequirementsV2 } from './messages.ts'
import {
  expectedPermit2Of,
  type Permit2Payment,
  type Permit2Scheme,
  parsePermit2Payment,
  permit2Address,
  permit2Proxies,
} from './permit2.ts'
import {
  containsPermit2Settle,
  encodeNonceBitmap,
  encodePermit2Allowance,
  encodePermit2Settle,
  isNonceSpent,
  isPermit2Settle,
  reasonOfPermit2Revert,
} from './permit2-abi.ts'
import { checkPermit2, type Permit2Verdict } from './permit2-check.ts'
import { type Permit2Transfer, permit2Digest, permit2DomainSeparator } from './permit2-digest.ts'
import { isReason } from './reasons.ts'

const settler = stranger.address
const other = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
const schemes = ['exact', 'upto'] as const
const now = Math.floor(Date.now() / 1000)
const domain = { name: 'Permit2', chainId: network.chainId, verifyingContract: PERMIT2_ADDRESS } as const
const separator = permit2DomainSeparator(network.chainId)

function requirements(scheme: Permit2Scheme, changes: Partial<PaymentRequirementsV2> = {}): PaymentRequirementsV2 {
  return {
    scheme,
    network: network.caip2,
    amount: '10000',
    asset: token.address,
    payTo,
    maxTimeoutSeconds: 60,
    extra: { name: 'USDC', version: '2', assetTransferMethod: 'permit2', facilitatorAddress: settler },
    ...changes,
  }
}

/** What the official client signs, read by our parser. */
async function signed(scheme: Permit2Scheme, changes: Partial<PaymentRequirementsV2> = {}): Promise<Permit2Payment> {
  const signer = toClientEvmSigner(payer)
  const client = scheme === 'exact' ? new ExactClient(signer) : new UptoClient(signer)
  const accepted = requirements(scheme, changes)
  const made = await client.createPaymentPayload(2, JSON.parse(JSON.stringify(accepted)))
  const parsed = parsePermit2Payment({ ...made, accepted })
  if (!parsed.ok) throw new Error(`${parsed.fault.path} ${parsed.fault.message}`)
  return parsed.value
}

function judge(payment: Permit2Payment, scheme: Permit2Scheme, nowSeconds = now): Permit2Verdict {
  const keccak = keccak256
  return checkPermit2({
    payment,
    scheme,
    expected,
    facilitator: settler,
    nowSeconds,
    recover,
    keccak,
    domainSeparator: separator,
  })
}

type Authorization = Permit2Payment['payload']['permit2Authorization']

function changed(payment: Permit2Payment, change: Partial<Authorization>): Permit2Payment {
  const permit2Authorization = { ...payment.payload.permit2Authorization, ...change }
  return { ...payment, payload: { ...payment.payload, permit2Authorization } }
}

function transfer(scheme: Permit2Scheme, changes: Partial<Permit2Transfer> = {}): Permit2Transfer {
  return {
    scheme,
    spender: permit2Proxies[scheme],
    owner: payer.address,
    token: token.address,
    permitted: 123_456_789n,
    nonce: 2n ** 255n + 7n,
    deadline: 1_900_000_000n,
    witness: { to: payTo, facilitator: scheme === 'upto' ? settler : undefined, validAfter: 17n },
    ...changes,
  }
}

test('addresses are those of the reference implementation', () => {
  expect(permit2Address).toBe(PERMIT2_ADDRESS)
  expect(permit2Proxies).toEqual({ exact: x402ExactPermit2ProxyAddress, upto: x402UptoPermit2ProxyAddress })
})

test.each(schemes)('%s: the digest is the one that viem makes of the official types', (scheme) => {
  for (const permitted of [0n, 1n, 2n ** 256n - 1n]) {
    const { owner: _, scheme: __, ...signing } = transfer(scheme, { permitted })
    const { to, validAfter } = signing.witness
    const message = { ...signing, permitted: { token: signing.token, amount: permitted } }
    const primaryType = 'PermitWitnessTransferFrom'
    const theirs =
      scheme === 'exact'
        ? hashTypedData({
            domain,
            types: permit2WitnessTypes,
            primaryType,
            message: { ...message, witness: { to, validAfter } },
          })
        : hashTypedData({
            domain,
            types: uptoPermit2WitnessTypes,
            primaryType,
            message: { ...message, witness: { to, validAfter, facilitator: settler } },
          })
    expect(bytesToHex(permit2Digest(separator, transfer(scheme, { permitted })))).toBe(theirs)
  }
})

test('a digest for upto without a facilitator, or of no address, is not made', () => {
  const { witness } = transfer('upto')
  expect(() => permit2Digest(separator, transfer('upto', { witness: { ...witness, facilitator: undefined } }))).toThrow(
    RangeError,
  )
  expect(() => permit2Digest(separator, transfer('exact', { token: '0x12' }))).toThrow(RangeError)
})

test.each([1, 65, 97])(
  'the call data is the one that viem makes of the official ABIs, with a signature of %i bytes',
  (size) => {
    const signature: Hex = `0x${'ab'.repeat(size)}`
    const given = { value: 5n, deadline: 6n, v: 28, r: `0x${'11'.repeat(32)}`, s: `0x${'22'.repeat(32)}` } as const
    for (const permit2612 of [undefined, given]) {
      const [exact, upto] = [transfer('exact'), transfer('upto')]
      const permit = ({ permitted, nonce, deadline }: Permit2Transfer) => ({
        permitted: { token: token.address, amount: permitted },
        nonce,
        deadline,
      })
      const { to, validAfter } = exact.witness
      const exactArgs = [permit(exact), payer.address, { to, validAfter }, signature] as const
      const uptoArgs = [permit(upto), 42n, payer.address, { to, facilitator: settler, validAfter }, signature] as const
      const [abi, uptoAbi] = [x402ExactPermit2ProxyABI, x402UptoPermit2ProxyABI]
      expect(encodePermit2Settle({ transfer: exact, amount: exact.permitted, signature, permit2612 })).toBe(
        permit2612 === undefined
          ? encodeFunctionData({ abi, functionName: 'settle', args: exactArgs })
          : encodeFunctionData({ abi, functionName: 'settleWithPermit', args: [permit2612, ...exactArgs] }),
      )
      expect(encodePermit2Settle({ transfer: upto, amount: 42n, signature, permit2612 })).toBe(
        permit2612 === undefined
          ? encodeFunctionData({ abi: uptoAbi, functionName: 'settle', args: uptoArgs })
          : encodeFunctionData({ abi: uptoAbi, functionName: 'settleWithPermit', args: [permit2612, ...uptoArgs] }),
      )
    }
  },
)

test('a settling transaction is known by what it settles, under any signature, and by nothing else', () => {
  const given = { value: 5n, deadline: 6n, v: 28, r: `0x${'11'.repeat(32)}`, s: `0x${'22'.repeat(32)}` } as const
  for (const scheme of schemes) {
    const one = transfer(scheme)
    for (const permit2612 of [undefined, given]) {
      const data = encodePermit2Settle({ transfer: one, amount: 42n, signature: '0xabcd', permit2612 })
      expect(isPermit2Settle(data, one, 42n)).toBe(true)
      expect(isPermit2Settle(data.toUpperCase().replace('0X', '0x'), one, 42n)).toBe(true)
      expect(isPermit2Settle(data, one, 41n)).toBe(scheme === 'exact')
      for (const changes of [{ nonce: 1n }, { owner: settler }, { permitted: 1n }, { deadline: 1n }, { token: payTo }])
        expect(isPermit2Settle(data, transfer(scheme, changes), 42n)).toBe(false)
      const wrapped = `0xdeadbeef${data.slice(10)}`
      expect(isPermit2Settle(wrapped, one, 42n)).toBe(false)
      expect(containsPermit2Settle(wrapped, one, 42n)).toBe(scheme === 'exact')
      expect(containsPermit2Settle(wrapped, transfer(scheme, { nonce: 1n }), 42n)).toBe(false)
    }
  }
})

test('the readings are those of Permit2 and ERC-20', () => {
  const abi = parseAbi(['function nonceBitmap(address, uint256) view returns (uint256)'])
  const nonce = 2n ** 255n + 777n
  expect(encodeNonceBitmap(payer.address, nonce)).toBe(
    encodeFunctionData({ abi, functionName: 'nonceBitmap', args: [payer.address, nonce >> 8n] }),
  )
  expect(encodePermit2Allowance(payer.address)).toBe(
    encodeFunctionData({ abi: erc20Abi, functionName: 'allowance', args: [payer.address, PERMIT2_ADDRESS] }),
  )
  expect([isNonceSpent(1n << 9n, 777n), isNonceSpent(~(1n << 9n) & (2n ** 256n - 1n), 777n)]).toEqual([true, false])
})

test('every error of the proxies has an official reason, and an unknown error has none', () => {
  const named = [...x402ExactPermit2ProxyABI, ...x402UptoPermit2ProxyABI].filter((entry) => entry.type === 'error')
  const unnamed = named.filter((error) => {
    const reason = reasonOfPermit2Revert(encodeErrorResult({ abi: [error] }))
    return reason === undefined || !isReason(reason)
  })
  // Neither is of the payer's making.
  expect([...new Set(unnamed.map((error) => error.name))]).toEqual([
    'InvalidPermit2Address',
    'ReentrancyGuardReentrantCall',
  ])
  const spent = encodeErrorResult({ abi: parseAbi(['error InvalidNonce()']) })
  expect(reasonOfPermit2Revert(spent)).toBe('permit2_invalid_nonce')
  expect([reasonOfPermit2Revert('0x'), reasonOfPermit2Revert('0x08c379a0')]).toEqual([undefined, undefined])
})

test.each(schemes)('%s: what the official client signs is taken, and says what settling it needs', async (scheme) => {
  const payment = await signed(scheme)
  const verdict = judge(payment, scheme)
  if (!verdict.ok) throw new Error(verdict.reason)
  expect(verdict).toMatchObject({ payer: payer.address, isProven: true, permit2612: undefined })
  expect(verdict.transfer).toMatchObject({ scheme, owner: payer.address, token: token.address, permitted: 10_000n })
  expect(verdict.signature).toBe(payment.payload.signature)
})

test.each(schemes)('%s: no field of a signed permit can be changed without losing the proof', async (scheme) => {
  const payment = await signed(scheme)
  const { permitted, witness } = payment.payload.permit2Authorization
  const changes: Partial<Authorization>[] = [
    { from: other },
    { nonce: '1' },
    { deadline: String(now + 3_000) },
    { permitted: { ...permitted, amount: '10001' } },
    { permitted: { ...permitted, token: other } },
    { spender: other },
    { witness: { ...witness, to: other } },
    { witness: { ...witness, validAfter: '1' } },
    ...(scheme === 'upto' ? [{ witness: { ...witness, facilitator: other } } as const] : []),
  ]
  for (const change of changes) {
    const verdict = judge(changed(payment, change), scheme)
    expect(verdict.ok && verdict.isProven, JSON.stringify(change)).toBe(false)
  }
})

test('a signature with v as 0 or 1 goes to the chain as Permit2 reads it, and one of a contract as it came', async () => {
  const payment = await signed('exact')
  const bytes = hexToBytes(payment.payload.signature)
  const low = bytesToHex(Uint8Array.of(...bytes.subarray(0, 64), must(bytes[64]) - 27))
  const withSignature = (signature: string) =>
    judge({ ...payment, payload: { ...payment.payload, signature } }, 'exact')
  expect(withSignature(low)).toMatchObject({ ok: true, isProven: true, signature: payment.payload.signature })
  expect(withSignature('0x1234')).toMatchObject({ ok: true, isProven: false, signature: '0x1234' })
  expect(withSignature('garbage')).toMatchObject({ ok: false, reason: 'invalid_permit2_signature' })
})

test.each(schemes)('%s: the first fault is the one that the official facilitator names', async (scheme) => {
  const payment = await signed(scheme)
  const { permitted, witness } = payment.payload.permit2Authorization
  const bad = { permitted: { ...permitted, amount: '1' }, deadline: '5' }
  const cases: Permit2Payment[] = [
    payment,
    changed(payment, { spender: other, witness: { ...witness, to: other } }),
    changed(payment, { ...bad, witness: { ...witness, to: other } }),
    changed(payment, { ...bad, witness: { ...witness, facilitator: other } }),
    changed(payment, bad),
    changed(payment, { deadline: String(now + 3) }),
    changed(payment, { ...bad, deadline: String(now + 60), witness: { ...witness, validAfter: String(now + 500) } }),
    changed(payment, { permitted: { token: other, amount: '10001' } }),
    changed(payment, { permitted: { ...permitted, token: other } }),
    changed(payment, { nonce: '1' }),
    { ...payment, accepted: { ...payment.accepted, scheme: scheme === 'exact' ? 'upto' : 'exact' } },
    { ...payment, accepted: { ...payment.accepted, network: 'eip155:1' } },
    { ...payment, payload: { ...payment.payload, signature: '0x' } },
    { ...payment, payload: { ...payment.payload, signature: 'garbage' } },
  ]
  resetAssetContractCache()
  const facilitator = officialFacilitator(scheme)
  for (const one of cases) {
    const theirs = await facilitator.verify(
      JSON.parse(JSON.stringify(one)),
      JSON.parse(JSON.stringify(requirements(scheme))),
    )
    const verdict = judge(one, scheme)
    const ours = verdict.ok && !verdict.isProven ? 'invalid_permit2_signature' : verdict.ok ? undefined : verdict.reason
    expect(ours, JSON.stringify(one.payload)).toBe(theirs.invalidReason)
  }
})

/** The official judgement over a chain on which every call goes through and only the token has code. */
function officialFacilitator(scheme: Permit2Scheme) {
  const signer = {
    getAddresses: () => [settler],
    getCode: async ({ address }: { address: string }) => (address === token.address ? '0x60' : '0x') as Hex,
    readContract: async () => undefined,
    verifyTypedData: async () => false,
    writeContract: async () => '0x' as Hex,
    sendTransaction: async () => '0x' as Hex,
    waitForTransactionReceipt: async () => ({ status: 'success' }),
  }
  return scheme === 'exact' ? new ExactFacilitator(signer) : new UptoFacilitator(signer)
}

test('an EIP-2612 permit beside the payment is taken when it is for this payment, and refused by the official reasons', async () => {
  const payment = await signed('exact')
  const info = {
    from: payer.address,
    asset: token.address,
    spender: permit2Address,
    amount: '10000',
    nonce: '0',
    deadline: String(now + 60),
    signature: payment.payload.signature,
    version: '1',
  }
  const withInfo = (change: object) =>
    judge({ ...payment, extensions: { eip2612GasSponsoring: { info: { ...info, ...change } } } }, 'exact')
  expect(withInfo({})).toMatchObject({ ok: true, permit2612: { value: 10_000n, deadline: BigInt(now + 60) } })
  expect(withInfo({ signature: undefined })).toMatchObject({ ok: true, permit2612: undefined })
  const faults = [
    [{ from: other }, 'eip2612_from_mismatch'],
    [{ asset: other }, 'eip2612_asset_mismatch'],
    [{ spender: other }, 'eip2612_spender_not_permit2'],
    [{ deadline: String(now + 3) }, 'eip2612_deadline_expired'],
    [{ amount: 'ten' }, 'invalid_eip2612_extension_format'],
    [{ signature: '0x12' }, 'invalid_eip2612_extension_format'],
    [{ from: 7 }, 'invalid_eip2612_extension_format'],
    [{ version: '1'.repeat(1_000) }, 'invalid_eip2612_extension_format'],
  ] as const
  for (const [change, reason] of faults) expect(withInfo(change)).toMatchObject({ ok: false, reason })
})

test('whatever is sent, the parser answers and never throws', async () => {
  const good = await signed('upto')
  const authorization = good.payload.permit2Authorization
  const withAuthorization = (change: object) => ({
    ...good,
    payload: { ...good.payload, permit2Authorization: { ...authorization, ...change } },
  })
  const wrong: unknown[] = [
    undefined,
    null,
    7,
    'x',
    [],
    {},
    { ...good, x402Version: 1 },
    { ...good, payload: { signature: '0x' } },
    { ...good, payload: { ...good.payload, signature: `0x${'00'.repeat(9_000)}` } },
    { ...good, accepted: { ...good.accepted, network: 'base' } },
    withAuthorization({ from: '0x12' }),
    withAuthorization({ nonce: '-1' }),
    withAuthorization({ nonce: '0x1' }),
    withAuthorization({ nonce: (2n ** 256n).toString() }),
    withAuthorization({ deadline: 5 }),
    withAuthorization({ permitted: undefined }),
    withAuthorization({ witness: { ...authorization.witness, facilitator: undefined } }),
  ]
  for (const value of wrong) expect(parsePermit2Payment(value).ok, JSON.stringify(value)?.slice(0, 200)).toBe(false)
  expect(parsePermit2Payment(withAuthorization({ nonce: '007' })).ok).toBe(false)
  expect(parsePermit2Payment(JSON.parse(JSON.stringify(good))).ok).toBe(true)
})

test('requirements are served for tokens of the registry alone', () => {
  expect(expectedPermit2Of(requirements('exact'))).toEqual(expected)
  expect(expectedPermit2Of(requirements('exact', { network: 'eip155:31337' }))).toBe('invalid_network')
  for (const change of [{ asset: other }, { payTo: 'merchant' }, { amount: '1.5' }])
    expect(expectedPermit2Of(requirements('exact', change))).toBe('invalid_payment_requirements')
})
