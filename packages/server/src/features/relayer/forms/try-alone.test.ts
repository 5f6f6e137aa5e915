import { expect, test } from 'vitest'
import { fail } from '../../../chain/errors.ts'
import type { Chain } from '../../../chain/port.ts'
import { AuthorizationPayload, StoredPermit2 } from '../port.ts'
import { tryAlone } from './index.ts'

const address = `0x${'1'.repeat(40)}` as const

/** Nodes that find every payment good, also one whose transaction they would not take. */
const chain = {
  inspectAuthorization: async () => ({ balance: 10n, nonceUsed: false, simulation: { ok: true } }),
  trySending: async () => true,
} as unknown as Chain

function tried(signatureBytes: number, gas?: string, nodes = chain) {
  const payload = AuthorizationPayload.parse({
    from: address,
    to: address,
    value: '10',
    validAfter: '0',
    validBefore: '2000000000',
    nonce: `0x${'2'.repeat(64)}`,
    signature: { kind: 'bytes', signature: `0x${'ff'.repeat(signatureBytes)}` },
    deployment: null,
    token: address,
    gas,
  })
  return tryAlone(nodes, payload, address)
}

test('a payload whose gas is less than a transaction of its length must have is not sent', async () => {
  expect([await tried(65, '90000'), await tried(8_192)]).toEqual(['taken', 'taken'])
  expect(await tried(8_192, '90000')).toMatchObject({ kind: 'not-carried' })
})

test('a trial that may end a payment is not decided by divided nodes', async () => {
  const refuse = async ({ refusal = 'passing' }: { readonly refusal?: string }) =>
    Promise.reject(refusal === 'final' ? fail('chain-unavailable') : new Error('refused'))
  const divided = { ...chain, inspectAuthorization: refuse, inspectPermit2: refuse }
  const permit = StoredPermit2.parse({
    ...{ kind: 'permit2', scheme: 'exact', spender: address, owner: address, token: address },
    ...{ permitted: '10', charged: '10', nonce: '1', deadline: '2000000000', signature: '0xff' },
    witness: { to: address, validAfter: '0', facilitator: null },
  })
  for (const trial of [tried(65, undefined, divided), tryAlone(divided, permit, address)])
    await expect(trial).rejects.toMatchObject({ code: 'chain-unavailable' })
})
