import type { Page, Route } from 'playwright-core'

/** What a page shows when something is refused, fails or is not allowed. */
export interface State {
  readonly name: string
  /** In the test environment, unless it begins with `/live`. `{…}` is filled in from the demo data. */
  readonly path: string
  readonly who?: 'viewer' | 'test-only'
  /** Makes the state on the page, before the page is loaded. */
  readonly before?: (page: Page) => Promise<void>
  /** What a reader does on the loaded page. */
  readonly act?: (page: Page) => Promise<void>
}

const problemType = 'application/problem+json'

/** Answers requests whose path matches with a problem of the service, as it writes one. */
function refuse(path: RegExp, status: number, code: string, detail: string) {
  const requestId = 'req_01h455vb4pex5vsknk084sn02q'
  const type = `https://pay.example.com/problems/${code}`
  const body = JSON.stringify({ type, title: code, status, detail, instance: '/', requestId })
  const answer = (route: Route) =>
    path.test(new URL(route.request().url()).pathname) && route.request().resourceType() === 'fetch'
      ? route.fulfill({ status, body, headers: { 'content-type': problemType, 'x-request-id': requestId } })
      : route.fallback()
  return async (page: Page): Promise<void> => {
    await page.route('**/*', answer)
  }
}

/** Shows the account as it is while the operator has suspended its organizations. */
async function suspended(page: Page): Promise<void> {
  await page.route('**/account', async (route) => {
    const answer = await route.fetch()
    const account = await answer.json()
    const suspension = {
      suspendedAt: '2026-11-27T09:30:00.000Z',
      suspensionReason: 'The identity check of the owner failed. Write to support@pay.example.com with case 4711.',
    }
    const organisations = account.organisations.map((one: object) => ({ ...one, ...suspension }))
    await route.fulfill({ response: answer, json: { ...account, organisations } })
  })
}

const requesterGone =
  'The API key that made the request was revoked, or the person who made it is no longer a member or may only read. Refuse the request. A person or key that may move the money can make a new one.'

/** Shows the balances of a wallet from which a transfer is under way, with deposits in screening and frozen. */
export async function partlySpendable(page: Page): Promise<void> {
  await page.route('**/balances?spendable=true', async (route) => {
    const answer = await route.fetch()
    const balances: Record<string, unknown>[] = await answer.json()
    const parts = { available: '203.5', reserved: '50.25', unscreened: '15', frozen: '5', notFinal: '0' }
    const json = balances.map((one) => (one.tokenSymbol === 'USDC' ? { ...one, parts } : one))
    await route.fulfill({ response: answer, json })
  })
}

export const states: readonly State[] = [
  { name: 'state-wallet-parts', path: '/wallets/{walletId}', before: partlySpendable },
  {
    name: 'state-approval-refused',
    path: '/approvals/{approvalId}',
    before: refuse(/\/approve$/, 409, 'approval-requester-not-allowed', requesterGone),
    act: async (page) => {
      await page.getByRole('button', { name: 'Approve' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
      await page.getByRole('alert').waitFor()
    },
  },
  {
    name: 'state-payment-archived',
    path: '/payments/{paymentId}',
    before: refuse(
      /^\/payments\/pay_/,
      410,
      'archived',
      'The event or payment is old and was moved to the archive of the service. What a payment used up stays used.',
    ),
  },
  { name: 'state-payment-unknown', path: '/payments/pay_01h455vb4pex5vsknk084sn02q' },
  {
    name: 'state-list-failed',
    path: '/payments',
    before: refuse(/^\/payments\/logs$/, 500, 'internal-error', 'Unexpected error. The request may have taken effect.'),
  },
  {
    name: 'state-home-failed',
    path: '/',
    before: refuse(
      /^\/(?:payments\/statistics|webhooks)$/,
      503,
      'service-unavailable',
      'The service cannot answer now.',
    ),
  },
  { name: 'state-viewer-approvals', path: '/approvals', who: 'viewer' },
  { name: 'state-viewer-wallet', path: '/wallets/{walletId}', who: 'viewer' },
  { name: 'state-viewer-keys', path: '/keys', who: 'viewer' },
  { name: 'state-test-only-in-live', path: '/live', who: 'test-only' },
  { name: 'state-suspended', path: '/', before: suspended },
  { name: 'state-suspended-wallet', path: '/wallets/{walletId}', before: suspended },
  {
    name: 'state-send',
    path: '/wallets/{walletId}',
    act: async (page) => {
      await page.getByRole('button', { name: 'Send', exact: true }).click()
      await page.getByRole('dialog').waitFor()
    },
  },
]
