import { expect, test } from 'vitest'
import { payUrl } from './fetch.ts'

test('the organisations of an account share the connections to the address of a seller', async () => {
  const groups: string[] = []
  const ctxOf = (organisationId: string, shareOwner: string) => ({
    tenant: { organisationId, environment: 'test' },
    shareOwner,
    reserveResponse: () => () => undefined,
    findSource: async () => ({ retiredAt: null }),
    sellerFetch: {
      send: async ({ group }: { readonly group: string }) => {
        groups.push(group)
        return { kind: 'failed', failure: 'unreachable' }
      },
    },
  })
  const request = { fromWalletId: 'wal_1', url: 'https://seller.example/report', maxAmount: '1' }
  for (const organisationId of ['org_1', 'org_2'])
    await expect(payUrl(ctxOf(organisationId, 'acc_1') as never, request as never)).rejects.toMatchObject({
      code: 'payment-url-unreachable',
    })
  await expect(payUrl(ctxOf('org_3', 'org_3') as never, request as never)).rejects.toThrow()
  expect(groups).toEqual(['acc_1', 'acc_1', 'org_3'])
})
