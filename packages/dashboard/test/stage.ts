import type { Browser } from 'playwright-core'
import type { DevRecord } from '../../devnet/src/dev-file.ts'
import type { DemoData } from './demo-data.ts'

/** Opens the one-time link of `npm start`, and returns the cookies that it leaves. */
export async function signIn(
  browser: Browser,
  { signInUrl, dashboardUrl }: Pick<DevRecord, 'signInUrl' | 'dashboardUrl'>,
) {
  const context = await browser.newContext()
  try {
    const page = await context.newPage()
    await page.goto(signInUrl)
    await page.waitForURL(`${dashboardUrl}/test`)
    return await context.storageState()
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
