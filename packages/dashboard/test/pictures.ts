import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { startTemporaryDev } from '../../devnet/src/temporary-dev.ts'
import { launchBrowser, watch } from './browser.ts'
import { makeDemoData } from './demo-data.ts'
import { pages } from './pages.ts'
import { joinedAs, pathOf, shown, signIn } from './stage.ts'
import { pathOfState, states } from './states.ts'

/** Names of pages narrow the pictures to those. */
const [folder, ...only] = process.argv.slice(2)
if (folder === undefined) {
  console.error('Usage: npm run dashboard:pictures -- <folder> [page ...]')
  process.exit(1)
}
const isWanted = (name: string) => only.length === 0 || only.includes(name)
mkdirSync(folder, { recursive: true })

const dev = await startTemporaryDev()
const browser = await launchBrowser()
try {
  const demo = await makeDemoData(dev)
  const storageState = await signIn(browser, dev)
  const running = { dev: () => dev, browser: () => browser }
  const people = {
    owner: storageState,
    viewer: await joinedAs(running, { email: 'viewer@example.com', role: 'viewer' }),
    nobody: { cookies: [], origins: [] },
    'test-only': await joinedAs(running, { email: 'invited.by.a.test.key@example.com', role: 'member' }),
  }
  for (const theme of ['light', 'dark'] as const)
    for (const width of [1440, 1024, 390]) {
      const viewport = { width, height: 900 }
      const context = await browser.newContext({ viewport, colorScheme: theme, storageState })
      const { faults } = watch(context, dev.baseUrl)
      const page = await context.newPage()
      for (const { name, path: place } of pages.filter(({ name }) => isWanted(name))) {
        await page.goto(`${dev.dashboardUrl}/test${pathOf(place, demo)}`)
        await shown(page)
        await page.getByText('Loading past events.').waitFor({ state: 'detached' })
        const file = path.join(folder, `${name}-${theme}-${width}.png`)
        await page.screenshot({ path: file, fullPage: only.length > 0 })
        console.log(file)
      }
      for (const state of states.filter(({ name }) => isWanted(name))) {
        const { name, who = 'owner', before, act } = state
        const other = await browser.newContext({ viewport, colorScheme: theme, storageState: people[who] })
        const tab = await other.newPage()
        await before?.(tab)
        await tab.goto(`${dev.dashboardUrl}${pathOfState(state, demo)}`)
        await shown(tab)
        await act?.(tab)
        await tab.waitForFunction(() => document.getAnimations().length === 0)
        const file = path.join(folder, `${name}-${theme}-${width}.png`)
        await tab.screenshot({ path: file })
        console.log(file)
        await other.close()
      }
      for (const fault of faults) console.log(`  ${fault}`)
      await context.close()
    }
} finally {
  await browser.close()
  await dev.stop()
}
