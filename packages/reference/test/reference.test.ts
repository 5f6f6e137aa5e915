import { createPurser } from '@purser/sdk'
import type { Browser, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findingsOn } from '../../dashboard/test/accessible.ts'
import { launchBrowser, type Watched, watch } from '../../dashboard/test/browser.ts'
import { Contexts, type Lent, type StorageState } from '../../dashboard/test/contexts.ts'
import { signIn } from '../../dashboard/test/stage.ts'
import { startTemporaryDev } from '../../devnet/src/temporary-dev.ts'
import { freshDatabase, type TestDatabase } from '../../server/test/database.ts'
import { buildIfNeeded } from './build-if-needed.ts'

let database: TestDatabase
let dev: Awaited<ReturnType<typeof startTemporaryDev>>
let browser: Browser
let contexts: Contexts
let storageState: StorageState

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  // No request of the reference reads a chain.
  const starting = startTemporaryDev({ databaseUrl: database.url, chains: false, probe: { busyMs: 80, idleMs: 200 } })
  ;[dev, browser] = await Promise.all([starting, launchBrowser(), buildIfNeeded()])
  contexts = new Contexts(browser, dev.baseUrl)
  storageState = await signIn(browser, dev)
})
afterAll(async () => {
  await browser?.close()
  await dev?.stop()
  await database?.drop()
})

const desktop = { width: 1440, height: 900 }
const phone = { width: 390, height: 844 }

/** Opens the reference and waits until an operation is shown. */
async function open(
  {
    hash = '',
    storageState: state = { cookies: [], origins: [] },
    ...options
  }: Lent & { readonly hash?: string; readonly storageState?: StorageState },
  work: (page: Page, seen: Watched) => Promise<void>,
): Promise<void> {
  const wanted = { options: { viewport: desktop, reducedMotion: 'reduce', ...options } as const, isAlone: false }
  await contexts.lend(wanted, state, async (context) => {
    const seen = watch(context, dev.baseUrl)
    const page = await context.newPage()
    await page.goto(`${dev.baseUrl}/docs/reference${hash}`)
    await page.getByRole('heading', { level: 1, name: 'Purser' }).waitFor({ state: 'attached' })
    await work(page, seen)
  })
}

const operation = (page: Page, id: string) => page.locator(`section[id$="/${id}"]`)

/** Opens the form of an operation, and returns how to send what is in it. */
async function tryOut(page: Page, id: string) {
  await operation(page, id)
    .getByRole('button', { name: /^Test Request/ })
    .click()
  const form = page.getByRole('dialog', { name: 'API Client' })
  const send = async (key?: string): Promise<{ readonly request: Request; readonly status: number }> => {
    if (key !== undefined) await form.getByRole('textbox', { name: 'Bearer Token' }).fill(key)
    const [response] = await Promise.all([
      page.waitForResponse((one) => one.request().resourceType() === 'fetch'),
      form.getByRole('button', { name: /^Send/ }).first().click(),
    ])
    return { request: response.request(), status: response.status() }
  }
  return { form, send }
}

test('the page opens with a list and a search of operations, without a fault and without a request to another host', async () => {
  await open({}, async (page, { faults }) => {
    await page.keyboard.press('Control+k')
    const search = page.getByRole('dialog')
    await search.getByRole('combobox').fill('rotate secret')
    await search
      .getByRole('option', { name: /rotate-secret/ })
      .first()
      .click()
    await operation(page, 'webhooks.rotateSecret').waitFor()
    await expect.poll(() => new URL(page.url()).hash).toBe('#tag/webhooks/webhooks.rotateSecret')
    const sidebar = page.locator('.t-doc__sidebar')
    await sidebar.getByText('Payments', { exact: true }).click()
    await sidebar.getByText('Get one payment', { exact: true }).click()
    await operation(page, 'payments.get').getByRole('heading', { name: 'Get one payment' }).waitFor()
    expect(new URL(page.url()).hash).toBe('#tag/payments/payments.get')
    const foreign = await page.evaluate(
      (origin) =>
        [...document.links].filter((link) => link.checkVisibility() && !link.href.startsWith(origin)).map(String),
      dev.baseUrl,
    )
    expect(foreign).toEqual([])
    await page.getByRole('link', { name: 'Guides', exact: true }).first().click()
    await page.waitForURL(`${dev.baseUrl}/docs`)
    expect(faults).toEqual([])
  })
})

test('a request with the key of the reader is answered by the service, and no key stays in the browser', async () => {
  const purser = createPurser({ apiKey: dev.apiKey, baseUrl: dev.baseUrl })
  const { name } = await purser.organisations.current()
  await open({ hash: '#organisations.current' }, async (page, { faults }) => {
    const { form, send } = await tryOut(page, 'organisations.current')
    const { request, status } = await send(dev.apiKey)
    expect([status, await request.headerValue('authorization')]).toEqual([200, `Bearer ${dev.apiKey}`])
    await expect.poll(() => form.getByRole('region', { name: /Response/ }).textContent()).toContain(name)
    const stored = await page.evaluate(async () => [
      ...Object.values(localStorage),
      ...Object.values(sessionStorage),
      document.cookie,
      ...(await indexedDB.databases()).map((database) => database.name),
    ])
    expect(stored.join(' ')).not.toContain(dev.apiKey)
    expect(stored.join(' ')).not.toContain('svc_test')
    await page.reload()
    await operation(page, 'organisations.current').waitFor()
    expect(await page.getByRole('textbox', { name: 'Bearer Token' }).first().inputValue()).toBe('')
    expect(faults).toEqual([])
  })
})

test('a list is sent without filters that the reader did not set', async () => {
  await open({ hash: '#payments.logs.list' }, async (page) => {
    const { send } = await tryOut(page, 'payments.logs.list')
    const { request, status } = await send(dev.apiKey)
    expect([request.url(), status]).toEqual([`${dev.baseUrl}/payments/logs`, 200])
  })
})

test('a person who is signed in to the dashboard does not act through the reference: no cookie is sent', async () => {
  await open({ storageState, hash: '#account.get' }, async (page) => {
    const asPerson = await page.evaluate(async () => (await fetch('/account')).status)
    // The cookie is there and good: a page that sends it would be answered.
    expect(asPerson).toBe(200)
    const { send } = await tryOut(page, 'account.get')
    const { request, status } = await send()
    expect([status, (await request.allHeaders()).cookie]).toEqual([401, undefined])
  })
})

test('samples are in curl, fetch and Python, and for our own clients', async () => {
  await open({ hash: '#payments.get' }, async (page) => {
    const sample = operation(page, 'payments.get').locator('.request-card')
    await expect.poll(() => sample.textContent()).toContain(`curl ${dev.baseUrl}/payments/pay_`)
    for (const [name, text] of [
      ['Fetch', "fetch('"],
      ['Requests', 'requests.get('],
      ['Purser for TypeScript', "await purser.payments.get('pay_"],
      ['Purser for Python', 'purser.payments.get("pay_'],
    ] as const) {
      await sample
        .getByRole('button', { name: /Shell|Fetch|Requests|Purser/ })
        .first()
        .click()
      await page.getByRole('option', { name }).click()
      await expect.poll(() => sample.textContent()).toContain(text)
    }
    await page.goto(`${dev.baseUrl}/docs/reference#error-not-found`)
    await page.reload()
    await page.waitForURL(`${dev.baseUrl}/docs/reference/plain#error-not-found`)
  })
})

test.each(['light', 'dark'] as const)(
  'in %s the page is accessible, is as wide as the screen of a desktop and of a phone, and shows no fault',
  async (colorScheme) => {
    await open({ colorScheme, bypassCSP: true, hash: '#payments.verify' }, async (page, { faults }) => {
      await operation(page, 'payments.verify').waitFor()
      await page.waitForFunction((mode) => document.body.classList.contains(`${mode}-mode`), colorScheme)
      for (const viewport of [desktop, phone]) {
        await page.setViewportSize(viewport)
        await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(viewport.width)
        await page.waitForFunction(() => document.getAnimations().length === 0)
        expect([viewport, await findingsOn(page, 'all')]).toEqual([viewport, []])
      }
      expect(faults).toEqual([])
    })
  },
)

test('without scripts the page leads to the reference without scripts', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false })
  try {
    const page = await context.newPage()
    await page.goto(`${dev.baseUrl}/docs/reference`)
    await page.getByRole('link', { name: '/docs/reference/plain' }).click()
    await page.waitForURL(`${dev.baseUrl}/docs/reference/plain`)
    expect(await page.locator('[id="payments.get"]').count()).toBe(1)
  } finally {
    await context.close()
  }
})
