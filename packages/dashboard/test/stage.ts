import { createPurser } from '@purser/sdk'
import type { Browser, Page } from 'playwright-core'
import type { Dev } from '../../devnet/src/dev.ts'
import type { DevRecord } from '../../devnet/src/dev-file.ts'
import { makeSignInLink } from '../../server/src/features/people/index.ts'
import type { DemoData } from './demo-data.ts'

/** On a machine that other work slows down, what a page shows comes late. A fault is what never comes. */
export const patienceMs = 60_000

/** Opens a one-time link, as the one of `npm start`, and presses the button of its page. */
export async function openLink(page: Page, signInUrl: string): Promise<void> {
  await page.goto(signInUrl)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** Signs in by a one-time link, and returns the cookies that it leaves. */
export async function signIn(
  browser: Browser,
  { signInUrl, dashboardUrl }: Pick<DevRecord, 'signInUrl' | 'dashboardUrl'>,
) {
  const context = await browser.newContext()
  context.setDefaultTimeout(patienceMs)
  try {
    const page = await context.newPage()
    await openLink(page, signInUrl)
    await page.waitForURL(`${dashboardUrl}/test`)
    return await context.storageState()
  } finally {
    await context.close()
  }
}

interface Running {
  readonly dev: () => Dev
  readonly browser: () => Browser
}

/** The cookies of a person after a new one-time link. */
export async function signedInBy({ dev, browser }: Running, email: string) {
  const { server, baseUrl, dashboardUrl } = dev()
  const { deps } = server
  const signInUrl = await makeSignInLink(deps, deps.db, { email, baseUrl })
  return signIn(browser(), { signInUrl, dashboardUrl })
}

/** Invites a person with the test key, and joins as that person. Returns their cookies. */
export async function joinedAs(
  running: Running,
  { email, role }: { readonly email: string; readonly role: 'viewer' | 'member' },
) {
  const { apiKey, baseUrl, dashboardUrl } = running.dev()
  await createPurser({ apiKey, baseUrl }).organisations.members.add({ email, role })
  const storageState = await signedInBy(running, email)
  const context = await running.browser().newContext({ storageState })
  context.setDefaultTimeout(patienceMs)
  try {
    const page = await context.newPage()
    await page.goto(`${dashboardUrl}/test`)
    await page.getByRole('button', { name: `Join as ${role}` }).click()
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
    return storageState
  } finally {
    await context.close()
  }
}

/** The address of a page, with the ids of the demo data in the place of their names. */
export function pathOf(path: string, demo: DemoData): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = demo[name]
    if (id === undefined) throw new Error(`the demo data has no ${name}`)
    return id
  })
}

/**
 * Shows the page at an address as a link in the dashboard does, and waits until all that it fetches is there. To load the document for each
 * page would take four times as long. An address without a page comes between, so that nothing of the page before is taken for the next.
 */
export async function show(page: Page, url: string): Promise<void> {
  const { origin, pathname } = new URL(url)
  const [environment = ''] = /^\/dashboard\/(?:test|live)(?=\/|$)/.exec(pathname) ?? []
  if (environment === '' || !page.url().startsWith(origin + environment)) await page.goto(url)
  else {
    await navigate(page, `${origin}${environment}/between`)
    await page.getByText('There is no page at this address').waitFor()
    await navigate(page, url)
  }
  await shown(page)
}

/** Waits until a page shows all that it fetches, or why it cannot. A sheet that is open beside the page hides the page's heading from what reads it. */
export async function shown(page: Page): Promise<void> {
  const heading = page.getByRole('heading', { level: 1 })
  await heading.or(page.getByRole('alert')).or(page.getByRole('dialog')).first().waitFor()
  await page.waitForFunction(() => document.querySelector('.skeleton') === null)
}

async function navigate(page: Page, url: string): Promise<void> {
  await page.evaluate((to) => history.pushState({}, '', to), url)
}
