import { encodeMppJson, parseMppCredential } from '@purser/protocol'
import { describe, expect, test } from 'vitest'
import type { Signer } from '../src/pay/index.ts'
import { challenge, mpp, refusalsOf, stage, stranger, tempoChallenge, url } from './offers-stage.ts'
import { account, errorOf, listeningSigner, noon, payTo, usdc } from './pay-stage.ts'

describe('MPP', () => {
  test('an authorization has the nonce of the challenge and ends with it', async () => {
    const { pay, signer, fetch } = stage(mpp(challenge()))
    await pay(url)
    const parsed = parseMppCredential(fetch.paid[0] ?? '')
    expect(parsed).toMatchObject({
      ok: true,
      value: {
        challenge: challenge(),
        payload: { type: 'authorization', validBefore: String(noon / 1_000 + 300), validAfter: '0' },
        source: `did:pkh:eip155:84532:${account.address}`,
      },
    })
    expect(signer.requested[0]?.domain).toMatchObject({ name: 'USDC', version: '2', chainId: 84532 })
  })

  test('without an end of its own a challenge is paid for five minutes, with a far one for an hour', async () => {
    for (const [expires, seconds] of [
      [undefined, 300],
      ['2027-01-01T00:00:00Z', 3_600],
    ] as const) {
      const { pay, signer } = stage(mpp(challenge({ expires })))
      await pay(url)
      expect(signer.requested[0]?.message.validBefore).toBe(BigInt(noon / 1_000 + seconds))
    }
  })

  const details = { chainId: 84532, decimals: 6, credentialTypes: ['authorization'] }
  const evm = (changes: object, more: object = {}) =>
    challenge({
      request: encodeMppJson({
        amount: '10000',
        currency: usdc.address,
        recipient: payTo,
        methodDetails: { ...details, ...more },
        ...changes,
      }),
    })

  test.each([
    ['an expired challenge', challenge({ expires: new Date(noon).toISOString() }), 'expired'],
    ['a session', challenge({ intent: 'session' }), 'unsupported-scheme'],
    ['another method', challenge({ method: 'stripe' }), 'unsupported-scheme'],
    ['a token that nobody knows', evm({ currency: stranger }), 'unknown-token'],
    ['decimals that the token does not have', evm({}, { decimals: 2 }), 'malformed'],
    ['credentials of other types only', evm({}, { credentialTypes: ['permit2'] }), 'unsupported-scheme'],
    ['splits to others', evm({}, { splits: [{ amount: '1', recipient: stranger }] }), 'malformed'],
    ['a credential in the Cookie header', challenge({ header: 'Cookie' }), 'malformed'],
    ['a credential in the Content-Type header', challenge({ header: 'content-type' }), 'malformed'],
    ['a charge by Tempo on another network', { ...evm({}), method: 'tempo' }, 'unsupported-scheme'],
    ['a charge on Tempo that the signer cannot pay', tempoChallenge('10000'), 'signer-cannot'],
  ])('%s is never signed for', async (_what, requested, reason) => {
    expect(await refusalsOf(mpp(requested))).toEqual([reason])
  })

  test('of an expired challenge and a dearer one that is not, the latter is paid', async () => {
    const { pay, signer } = stage(mpp(challenge({ expires: new Date(noon).toISOString() }), evm({ amount: '20000' })))
    await pay(url)
    expect(signer.requested.map(({ message }) => message.value)).toEqual([20_000n])
  })

  test('a challenge that expires while the caller thinks is not paid', async () => {
    const clock = { now: noon }
    const confirm = () => {
      clock.now += 300_000
      return true
    }
    const limits = { perCall: '1', confirmAbove: '0', confirm }
    expect(await refusalsOf(mpp(challenge()), { limits, now: () => clock.now })).toEqual(['expired'])
  })

  test("the caller's own Authorization is never replaced: the credential goes where the challenge wants it, or the offer is left", async () => {
    const headers = { authorization: 'Bearer own-key' }
    const sent: Headers[] = []
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const request = new Request(input, init)
      sent.push(request.headers)
      const named = request.url.endsWith('/named') ? { header: 'Payment-Authorization' } : {}
      if (request.headers.has('payment-authorization')) return new Response('goods')
      return new Response('', { status: 402, headers: mpp(challenge(named)) })
    }
    const { pay } = stage({}, { fetch })
    expect(await errorOf(pay('https://s.test/plain', { headers }))).toMatchObject({
      refusals: [{ reason: 'header-taken' }],
    })
    expect((await pay('https://s.test/named', { headers })).status).toBe(200)
    expect(sent.map((each) => each.get('authorization'))).toEqual(Array(3).fill('Bearer own-key'))
    expect(parseMppCredential(sent.at(-1)?.get('payment-authorization') ?? '').ok).toBe(true)
  })

  const hash = `0x${'ab'.repeat(32)}` as const
  const pushing: Partial<Signer> = { sendTransaction: async () => hash }
  const pulling: Partial<Signer> = { signTempoTransaction: async () => '0x76ab' }

  test.each([
    ['pull is preferred', tempoChallenge('10000'), { ...pushing, ...pulling }, 'transaction'],
    [
      'push, where the seller takes nothing else',
      tempoChallenge('1', { supportedModes: ['push'] }),
      { ...pushing, ...pulling },
      'hash',
    ],
    ['push, where the signer can do nothing else', tempoChallenge('1'), pushing, 'hash'],
    ['nothing costs a proof', tempoChallenge('0'), {}, 'proof'],
  ])('on Tempo: %s', async (_what, requested, abilities, type) => {
    const { pay, fetch } = stage(mpp(requested), { signer: { ...listeningSigner(), ...abilities } })
    await pay(url)
    expect(parseMppCredential(fetch.paid[0] ?? '')).toMatchObject({ value: { payload: { type } } })
  })

  test('a sponsored charge is not pushed', async () => {
    const signer = { ...listeningSigner(), ...pushing }
    expect(await refusalsOf(mpp(tempoChallenge('1', { feePayer: true })), { signer })).toEqual(['signer-cannot'])
  })
})
