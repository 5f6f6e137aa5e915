import type { Page, Route } from 'playwright-core'
import type { DemoData } from './demo-data.ts'
import { pathOf } from './stage.ts'

/** What a page shows when something is refused, fails or is not allowed. */
export interface State {
  readonly name: string
  /** In the test environment, unless it begins with `/live` or is of nobody. `{…}` is filled in from the demo data. */
  readonly path: string
  readonly who?: 'viewer' | 'test-only' | 'nobody'
  /** Makes the state on the page, before the page is loaded. */
  readonly before?: (page: Page) => Promise<void>
  /** What a reader does on the loaded page. */
  readonly act?: (page: Page) => Promise<void>
}

/** The address of a state, after the one of the dashboard. */
export function pathOfState({ path, who }: State, demo: DemoData): string {
  return `${who === 'nobody' || path.startsWith('/live') ? '' : '/test'}${pathOf(path, demo)}`
}

const problemType = 'application/problem+json'

/** Answers requests whose path matches with a problem of the service, as it writes one. */
function refuse(path: RegExp, status: number, code: string, detail: string) {
  const requestId = 'req_01h455vb4pex5vsknk084sn02q'
  const type = `https://pay.example.com/problems/${code}`
  const body = JSON.stringify({ type, title: code, status, detail, instance: '/', requestId })
  const response = (route: Route) =>
    path.test(new URL(route.request().url()).pathname) && route.request().resourceType() === 'fetch'
      ? route.fulfill({ status, body, headers: { 'content-type': problemType, 'x-request-id': requestId } })
      : route.fallback()
  return async (page: Page): Promise<void> => {
    await page.route('**/*', response)
  }
}

/** Shows the account as it is while the operator has suspended its organisations. */
async function suspended(page: Page): Promise<void> {
  await page.route('**/account', async (route) => {
    const response = await route.fetch()
    const account = await response.json()
    const suspension = {
      suspendedAt: '2026-11-27T09:30:00.000Z',
      suspensionReason: 'The identity check of the owner failed. Write to support@pay.example.com with case 4711.',
    }
    const organisations = account.organisations.map((one: object) => ({ ...one, ...suspension }))
    await route.fulfill({ response: response, json: { ...account, organisations } })
  })
}

const requesterGone =
  'The API key that made the request was revoked, or the person who made it is no longer a member or may only read. Refuse the request. A person or key that may move the money can make a new one.'

/** Shows the balances of a wallet from which a transfer is under way, with deposits in screening and frozen. */
export async function partlySpendable(page: Page): Promise<void> {
  await page.route('**/balances?spendable=true', async (route) => {
    const response = await route.fetch()
    const balances: Record<string, unknown>[] = await response.json()
    const parts = { available: '203.5', reserved: '50.25', unscreened: '15', frozen: '5', notFinal: '0' }
    const json = balances.map((one) => (one.tokenSymbol === 'USDC' ? { ...one, parts } : one))
    await route.fulfill({ response: response, json })
  })
}

/** Money on hold in more wallets than the service counts. */
export const manyHolds = {
  wallets: 240,
  isWhole: false,
  amounts: Array.from({ length: 100 }, (_, index) => ({
    walletId: `mwt_01h455vb4pex5vsknk084sn${String(index).padStart(3, '0')}`,
    masterWalletId: null,
    name:
      index === 0
        ? 'Treasury of the north'
        : index === 1
          ? 'A customer with a name that is longer than any column'
          : null,
    chain: 'base',
    tokenSymbol: 'USDC',
    unscreened: index === 2 ? '1250.000001' : '15',
    frozen: '0.25',
  })),
}

async function heldInMany(page: Page): Promise<void> {
  await page.route('**/wallet-infra/holds', (route) => route.fulfill({ json: manyHolds }))
}

/** Shows a payment as one of 39 that a transaction settled. */
export async function settledWithOthers(page: Page): Promise<void> {
  await page.route(/\/payments\/pay_\w+$/, async (route) => {
    if (route.request().resourceType() !== 'fetch') return route.fallback()
    const response = await route.fetch()
    await route.fulfill({ response: response, json: { ...(await response.json()), batchPayments: 39 } })
  })
}

/** Sheets and dialogs, by the page and the button that opens them. */
const opened: readonly State[] = (
  [
    ['send', '/wallets/{walletId}', 'Send'],
    ['receive', '/wallets/{walletId}', 'Receive'],
    ['auto-sweep', '/wallets/{walletId}?view=sweeps', /automatic sweep/i],
    ['sweep', '/wallets/{childId}', 'Sweep'],
    ['new-wallet', '/wallets', /^Create a wallet/],
    ['seal', '/vaults/{vaultId}', 'Seal'],
    ['share', '/vaults/{vaultId}', 'Share'],
    ['decline', '/approvals/{approvalId}', 'Decline'],
    ['new-key', '/keys', /^Create a test key/],
    ['revoke-key', '/keys', /^Revoke /],
    ['replay', '/webhooks/{webhookId}', 'Replay failed'],
    ['invite', '/team', 'Invite'],
    ['role', '/team', /^Change the role/],
    ['remove-member', '/team', /^Remove /],
    ['verify-chain', '/audit-log', 'Verify the chain'],
    ['passkey', '/account', 'Add a passkey'],
    ['delete-account', '/bank-accounts', /^Delete /],
    ['delete-organisation', '/settings', /^Delete /],
  ] as const
).map(([name, path, button]) => ({
  name: `opened-${name}`,
  path,
  act: async (page) => {
    // The page before may have had one open.
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByRole('main').getByRole('button', { name: button }).first().click()
    await page.getByRole('dialog').waitFor()
  },
}))

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
      'The event or payment is old and was moved to the archive of the service. Ask the operator for it.',
    ),
  },
  {
    name: 'state-payment-batch',
    path: '/payments/{paymentId}',
    before: settledWithOthers,
    act: async (page) => {
      await page.getByRole('button', { name: 'Verify here' }).click()
      await page.getByText('Verified: the service signed this.').waitFor()
    },
  },
  {
    name: 'state-home-holds',
    path: '/',
    before: heldInMany,
    act: (page) => page.getByText('Show the newest 100').click(),
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
  { name: 'sign-in', path: '/sign-in', who: 'nobody' },
  { name: 'sign-in-refused', path: '/sign-in?error=link-not-valid', who: 'nobody' },
  { name: 'choose-password', path: '/choose-password?token=a-token', who: 'nobody' },
  { name: 'choose-password-none', path: '/choose-password', who: 'nobody' },
  ...['', '/payments', '/vaults', '/wallets', '/transfers', '/keys', '/webhooks', '/events', '/settings'].map(
    (path) => ({
      name: `live${path.replace('/', '-')}`,
      path: `/live${path}`,
    }),
  ),
  ...opened,
  {
    name: 'opened-palette',
    path: '/',
    act: async (page) => {
      await page.keyboard.press('Control+k')
      await page.locator('[role="combobox"]:focus').waitFor()
    },
  },
]

/** Those of one person in one kind of state: `state`, `live` or `opened` of the owner, otherwise the person. */
export function groupOf({ name, who }: State): string {
  return who ?? name.split('-')[0] ?? name
}

export const stateGroups = [...new Set(states.map(groupOf))]
