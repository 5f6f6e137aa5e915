import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { z } from 'zod'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const AxeResult = z.array(z.object({ id: z.string(), impact: z.string().nullable(), nodes: z.array(z.string()) }))

const desktop = { width: 1440, height: 900 }
const phone = { width: 360, height: 740 }

/** A context in which axe may run. */
export const inspected = {
  colorScheme: 'light',
  reducedMotion: 'reduce',
  viewport: desktop,
  bypassCSP: true,
} as const

/**
 * Serious and critical findings, as `rule: what it found`. A rule that finds only what is less serious does not run: axe states the impact of each.
 * The theme changes colors alone, so its second run needs no other rule.
 */
export async function findingsOn(page: Page, rules: 'all' | 'color-contrast'): Promise<string[]> {
  const chosen =
    rules === 'all'
      ? 'rules: Object.fromEntries(lesser.map((id) => [id, { enabled: false }]))'
      : `runOnly: ['${rules}']`
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe)
  const found: unknown = await page.evaluate(
    `(() => {
      const lesser = axe._audit.rules.filter(({ impact }) => impact === 'minor' || impact === 'moderate').map(({ id }) => id)
      return axe.run(document, { resultTypes: ['violations'], ${chosen} })
    })()
      .then(({ violations }) => violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ html }) => html) })))`,
  )
  return AxeResult.parse(found)
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).join(' | ')}`)
}

/** Lists what is wider than its place on a phone: the page, or an open sheet or dialog. It leaves out boxes of one pixel, which only screen readers see. */
function widerThanItsPlace(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [document.documentElement, ...document.querySelectorAll('[role="dialog"], [role="dialog"] > *')]
      .filter(({ scrollWidth, clientWidth }) => clientWidth > 1 && scrollWidth > clientWidth)
      .map(({ tagName, scrollWidth, clientWidth }) => `${tagName}: ${scrollWidth} in ${clientWidth}`),
  )
}

/** Expects no serious finding of axe in either theme, and nothing that scrolls sideways on a phone, of the page as it stands. */
export async function expectAccessible(page: Page, name: string): Promise<void> {
  // The dashboard puts its theme on the root a moment later; the documentation has style sheets alone.
  const settled = (isDark: boolean) =>
    page.waitForFunction(
      (dark) =>
        matchMedia('(prefers-color-scheme: dark)').matches === dark &&
        (document.getElementById('root') === null || document.documentElement.classList.contains('dark') === dark) &&
        document.getAnimations().length === 0,
      isDark,
    )
  await settled(false)
  expect([name, 'light', await findingsOn(page, 'all')]).toEqual([name, 'light', []])
  await page.emulateMedia({ colorScheme: 'dark' })
  await settled(true)
  expect([name, 'dark', await findingsOn(page, 'color-contrast')]).toEqual([name, 'dark', []])
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(phone)
  // A chart follows the width of its card a frame later.
  await expect.poll(async () => [name, await widerThanItsPlace(page)]).toEqual([name, []])
  await page.setViewportSize(desktop)
}
