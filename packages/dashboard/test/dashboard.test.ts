import { readFile } from 'node:fs/promises'
import { createPurser, type Purser } from '@purser/sdk'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTemporaryDev } from '../../devnet/src/temporary-dev.ts'
import { freshDatabase, type TestDatabase } from '../../server/test/database.ts'
import { actScenarios } from './act-scenarios.ts'
import { approvalScenarios } from './approval-scenarios.ts'
import { launchBrowser, watch } from './browser.ts'
import { buildIfNeeded } from './build-if-needed.ts'
import { Contexts } from './contexts.ts'
import { makeDemoData } from './demo-data.ts'
import { developerScenarios } from './developer-scenarios.ts'
import { environmentScenarios } from './environment-scenarios.ts'
import { everyPageScenarios } from './every-page.ts'
import { liveScenarios } from './live-scenarios.ts'
import { makingScenarios } from './making-scenarios.ts'
import { paymentScenarios } from './payment-scenarios.ts'
import { peopleScenarios, type Stage } from './people-scenarios.ts'
import { securityScenarios } from './security-scenarios.ts'
import { show, signedInBy, signIn } from './stage.ts'
import { partlySpendable } from './states.ts'
import { strangerScenarios } from './stranger-scenarios.ts'
import { workScenarios } from './work-scenarios.ts'

let database: TestDatabase
let dev: Awaited<ReturnType<typeof startTemporaryDev>>
let browser: Browser
let contexts: Contexts
let session: { readonly storageState: Awaited<ReturnType<typeof signIn>>; readonly since: number }
let paymentId: string

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  // Few tests wait for a deposit or a bridge, and each read costs for as long as the file runs.
  const seldom = { depositPollMsMax: 1_000, relayerMs: 1_000, probe: { busyMs: 80, idleMs: 200 } }
  const starting = startTemporaryDev({ databaseUrl: database.url, ...seldom })
  ;[dev, browser] = await Promise.all([starting, launchBrowser(), buildIfNeeded()])
  contexts = new Contexts(browser, dev.baseUrl)
  session = { storageState: await signIn(browser, dev), since: performance.now() }
  paymentId = await pay('0.01')
})
afterAll(async () => {
  await browser?.close()
  await dev?.stop()
  await database?.drop()
})

/** After ten minutes the service asks who signed in to prove it again before money moves. No test takes the other half of them. */
const sessionMsMax = 300_000

async function freshSession() {
  if (performance.now() - session.since > sessionMsMax)
    session = {
      storageState: await signedInBy({ dev: () => dev, browser: () => browser }, 'dev@example.com'),
      since: performance.now(),
    }
  return session.storageState
}

function purserOf(): Purser {
  return createPurser({ apiKey: dev.apiKey, baseUrl: dev.baseUrl })
}

/** Pays 0.01 or another amount by a stub, over the API, as a seller's server does. */
async function pay(price: string): Promise<string> {
  const { paymentId } = await purserOf().payments.verify({
    protocol: 'x402',
    credential: 'stub_payment_accepted',
    price,
    currency: 'USD',
    walletId: dev.walletId,
    resource: 'https://api.example.com/forecast',
    method: 'GET',
    reportsDelivery: false,
  })
  return paymentId
}

const open: Stage['open'] = async ({ storageState, isAlone = false, ...options }, work) => {
  const cookies = storageState ?? (await freshSession())
  await contexts.lend({ options, isAlone }, cookies, async (context) =>
    work(await context.newPage(), watch(context, dev.baseUrl), context),
  )
}

test('a visitor who is not signed in is sent to the sign-in page, and a used link says so', async () => {
  await open({ storageState: { cookies: [], origins: [] } }, async (page) => {
    await page.goto(`${dev.dashboardUrl}/test/payments`)
    await page.waitForURL(/\/dashboard\/sign-in\?to=%2Fdashboard%2Ftest%2Fpayments$/)
    await page.goto(dev.signInUrl)
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('was used already')
  })
})

test('a payment appears while one looks, opens in a sheet with its own address, and a reload shows its page', async () => {
  await open({}, async (page, { faults }) => {
    await page.goto(`${dev.dashboardUrl}/test/payments`)
    await page.getByText('Live', { exact: true }).waitFor()
    const paymentId = await pay('1234.5')
    const row = page.getByRole('row').filter({ hasText: '1,234.50 USDC' })
    await row.waitFor()
    await row.getByText('Settled').waitFor()
    await row.getByText('simulated').waitFor()
    await row.click()
    await page.getByRole('dialog').getByText('Signed and verified').waitFor()
    expect(new URL(page.url()).pathname).toBe(`/dashboard/test/payments/${paymentId}`)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(new URL(page.url()).pathname).toBe('/dashboard/test/payments')
    await page.goto(`${dev.dashboardUrl}/test/payments/${paymentId}`)
    await page.getByRole('heading', { level: 1, name: '1,234.50 USDC' }).waitFor()
    expect(faults).toEqual([])
  })
})

test('the payments that a filter leaves are saved as the CSV of the API', async () => {
  await open({}, async (page, { faults }) => {
    await page.goto(`${dev.dashboardUrl}/test/payments?walletId=${dev.walletId}`)
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export CSV' }).click()
    const saved = await saving
    await page.getByText('Payments saved').waitFor()
    expect(saved.suggestedFilename()).toMatch(/^payments-\d{4}-\d\d-\d\d\.csv$/)
    const path = `/payments/logs?walletId=${dev.walletId}&limit=500`
    const headers = { authorization: `Bearer ${dev.apiKey}`, accept: 'text/csv' }
    const csv = await (await fetch(dev.baseUrl + path, { headers })).text()
    expect(csv).toContain(paymentId)
    expect(await readFile(await saved.path(), 'utf8')).toBe(csv)
    expect(faults).toEqual([])
  })
})

test('a newcomer makes a test payment with one click, and sees its row come and its money settle on chain', async () => {
  await open({}, async (page, { faults }) => {
    await page.goto(`${dev.dashboardUrl}/test`)
    await page.getByText('Live', { exact: true }).waitFor()
    const rows = page.getByRole('table', { name: 'Newest payments' }).getByRole('row')
    await rows.nth(1).waitFor()
    const before = await rows.count()
    const inMonth = async () =>
      Number((await page.getByText('Payments this month').locator('..').innerText()).replaceAll(/\D/g, ''))
    const counted = await inMonth()
    await page.getByRole('button', { name: 'Make a test payment' }).first().click()
    await page.getByText('Test payment of 0.01 USDC made').waitFor()
    await expect.poll(() => rows.count()).toBeGreaterThan(before)
    await expect.poll(inMonth).toBeGreaterThan(counted)
    await rows.nth(1).click()
    await page.getByRole('heading', { level: 1, name: '0.01 USDC' }).waitFor()
    await page.getByText('Settled', { exact: true }).first().waitFor()
    await page
      .getByRole('button', { name: /^Copy 0x[0-9a-f]{64}$/ })
      .first()
      .waitFor()
    // The local chain is known to no public explorer.
    expect(await page.locator('a[target="_blank"]').count()).toBe(0)
    expect(faults).toEqual([])
  })
})

/** By its key; what is typed before its field has the focus goes nowhere. */
async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press('Control+k')
  await page.locator('[role="combobox"]:focus').waitFor()
}

test('the keyboard alone finds a page, a pasted id, a row, and the way back', async () => {
  await open({}, async (page) => {
    await page.goto(`${dev.dashboardUrl}/test`)
    await page.getByText('Live', { exact: true }).waitFor()
    await openPalette(page)
    await page.keyboard.type('payments')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Payments' }).waitFor()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByRole('table', { name: 'Payments', exact: true }).getByRole('row').nth(1).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByText('Signed and verified').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await openPalette(page)
    await page.keyboard.type(paymentId)
    await page.keyboard.press('Enter')
    await page.waitForURL(new RegExp(`/payments/${paymentId}$`))
  })
})

const stage = { dev: () => dev, purserOf, browser: () => browser, open }
peopleScenarios(stage)
// After those that count the sessions of the person who signs in here once more.
developerScenarios(stage)
securityScenarios(stage)
workScenarios(stage)
actScenarios(stage)
paymentScenarios(stage)

let made: ReturnType<typeof makeDemoData> | undefined

/** Made once, when it is first wanted: the tests above look at an organisation that is nearly empty. */
function demoData(): ReturnType<typeof makeDemoData> {
  made ??= makeDemoData(dev)
  return made
}

everyPageScenarios(stage, demoData)

test('a viewer reads what waits and has no button to decide it', async () => {
  await open({}, async (page, { faults }) => {
    const { approvalId } = await demoData()
    await page.route(`${dev.baseUrl}/account`, async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response: response, body: (await response.text()).replaceAll('"owner"', '"viewer"') })
    })
    await page.goto(`${dev.dashboardUrl}/test/approvals/${approvalId}`)
    await page.getByText('Owners and admins decide.').waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
    expect(faults).toEqual([])
  })
})

test('a wallet shows what can be sent and what holds the rest, fits a phone, and gets coin for gas from the faucet', async () => {
  await open({}, async (page, { faults }) => {
    const { walletId = '' } = await demoData()
    await partlySpendable(page)
    await page.goto(`${dev.dashboardUrl}/test/wallets/${walletId}`)
    const balance = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Balance' }) })
    const [usdc, coin] = [balance.getByRole('listitem').first(), balance.getByRole('listitem').last()]
    await usdc.getByText('203.50 USDC').waitFor()
    await page.setViewportSize({ width: 360, height: 740 })
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360)
    const before = await coin.innerText()
    await page.getByRole('button', { name: 'Get 0.05 ETH for gas' }).click()
    await expect.poll(() => coin.innerText()).not.toBe(before)
    const requested = page.waitForRequest(/\/transactions\?.*onHold=true/)
    await usdc.getByRole('link', { name: '15 USDC' }).click()
    await page.waitForURL(/view=on-hold/)
    await requested
    await usdc.getByRole('link', { name: '50.25 USDC' }).click()
    await page.waitForURL(/view=reserved/)
    await page.setViewportSize({ width: 1440, height: 900 })
    const reserving = page.getByRole('table', { name: 'What reserves money' })
    for (const [amount, kind] of [
      ['70 USDC', 'Transfer'],
      ['75.50 USDC', 'Withdrawal'],
    ] as const)
      await reserving.getByRole('row').filter({ hasText: amount }).getByRole('link', { name: kind }).waitFor()
    await reserving.getByRole('row').filter({ hasText: '75.50 USDC' }).click()
    await page.waitForURL(/\/withdrawals\/wdr_/)
    expect(faults).toEqual([])
  })
})

test('on a phone a button opens the filters of a list, and shows how many are set', async () => {
  await open({ viewport: { width: 360, height: 740 } }, async (page, { faults }) => {
    for (const [list, filter, value] of [
      ['logs', 'Status', '4xx'],
      ['routes', 'Protocol', 'x402'],
      ['audit-log', 'Time', '24h'],
    ] as const) {
      await show(page, `${dev.dashboardUrl}/test/${list}`)
      const button = page.getByRole('button', { name: /^Filters/ })
      await button.waitFor()
      expect([list, await page.getByLabel(filter, { exact: true }).isVisible()]).toEqual([list, false])
      await button.click()
      await page.getByLabel(filter, { exact: true }).selectOption(value)
      await page.getByRole('button', { name: 'Filters (1)' }).waitFor()
      expect([list, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([list, 360])
    }
    expect(faults).toEqual([])
  })
})

test('a child address has a page of its own, found by its id: its deposits, its sweeps, and a code to receive', async () => {
  await open({}, async (page, { faults }) => {
    const { childId = '', walletId = '' } = await demoData()
    await page.goto(`${dev.dashboardUrl}/test/wallets/${walletId}?view=children`)
    await page.getByRole('table', { name: 'Child addresses' }).getByText('Customer 7').click()
    await page.waitForURL(new RegExp(`/wallets/${childId}$`))
    await page.getByRole('heading', { level: 1, name: 'Customer 7' }).waitFor()
    const rows = (name: string) => page.getByRole('table', { name }).getByRole('row')
    await rows('Deposits and transfers').filter({ hasText: '12.50 USDC' }).first().waitFor()
    await page.getByRole('button', { name: 'Receive' }).click()
    await page.getByRole('img', { name: /^QR code of 0x/ }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'Sweeps' }).click()
    await rows('Sweeps').filter({ hasText: '12.50 USDC' }).waitFor()
    await openPalette(page)
    await page.keyboard.type(childId)
    await page.keyboard.press('Enter')
    await page.waitForURL(new RegExp(`/wallets/${childId}$`))
    await page.getByRole('button', { name: 'Sweep' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Sweep USDC' }).click()
    const sheet = page.getByRole('dialog', { name: 'Sweep' })
    await sheet.getByRole('link', { name: /^cad_/ }).waitFor()
    await sheet.getByText('Swept', { exact: true }).first().waitFor()
    expect(faults).toEqual([])
  })
})

test('lists name the wallet that money left, and the person who made a key', async () => {
  await open({}, async (page, { faults }) => {
    await demoData()
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.goto(`${dev.dashboardUrl}/test/transfers`)
    const cell = (row: string, text: string) =>
      page.getByRole('row').filter({ hasText: row }).getByRole('cell', { name: text }).waitFor()
    await cell('Supplier 11', 'Treasury')
    await show(page, `${dev.dashboardUrl}/test/withdrawals`)
    await cell('Payroll 10', 'Treasury')
    await show(page, `${dev.dashboardUrl}/test/keys`)
    const names = page.getByRole('row').filter({ hasText: 'Old laptop' }).getByRole('cell')
    await expect.poll(() => names.allInnerTexts()).toContainEqual('First test key')
    expect(faults).toEqual([])
  })
})

test('a list shows the columns that fit into its width: beside the narrow rail as many as beside the wide one', async () => {
  await open({}, async (page) => {
    await demoData()
    for (const width of [1024, 1100]) {
      await page.setViewportSize({ width, height: 768 })
      for (const [path, column] of [
        ['keys', 'Permissions'],
        ['payments', 'Payer'],
        ['approvals?view=history', 'Requested by'],
      ] as const) {
        await show(page, `${dev.dashboardUrl}/test/${path}`)
        await page.getByRole('columnheader', { name: column }).waitFor()
      }
    }
  })
})

test('a person approves money that waits, and the wallet, the count and the transfer show it', async () => {
  await open({}, async (page, { faults }) => {
    const { approvalId, waitingTransferId } = await demoData()
    await page.goto(`${dev.dashboardUrl}/test`)
    await page.getByRole('link', { name: '2 requests wait for an approval.' }).click()
    await page.getByRole('link', { name: 'Approvals 2 waiting' }).waitFor()
    await page.goto(`${dev.dashboardUrl}/test/approvals/${approvalId}`)
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('dialog').getByText('cannot be canceled').waitFor()
    await page.getByRole('button', { name: 'Approve 70 USDC' }).click()
    await page.getByText('Approved', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Approvals 1 waiting' }).waitFor()
    await page.goto(`${dev.dashboardUrl}/test/transfers/${waitingTransferId}`)
    await page.getByText('Approved').waitFor()
    await page.getByText('Arrived', { exact: true }).first().waitFor()
    expect(faults).toEqual([])
  })
})

environmentScenarios(stage, demoData)
approvalScenarios(stage, demoData)
makingScenarios(stage, demoData)
strangerScenarios(stage, demoData)
liveScenarios(stage)
