/** Follows a guide as its reader does: CONTRIBUTING.md says what a page shows how. */

import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import { fileOf, keepsRunning, patternOf, type Step, stepsOf, whyNotAsShown } from './guide-steps.ts'
import type { Desk, Printed } from './reader-desk.ts'

export type Texts = Readonly<Record<string, string>>

/** Which part of a page is followed, and what the page leaves to its reader. */
export interface Followed {
  /** The heading of one section. Without it, the whole page. */
  readonly section?: string
  /** What the reader writes in place of a text of the page, such as an id for `mwt_…`. */
  readonly instead?: Texts
  /** Members of responses whose values are not those of the page. */
  readonly differing?: readonly string[]
  /** `comments`: the page shows what commands print at the end of their lines, after `#`, and refusals end no command. */
  readonly output?: 'comments'
}

type Following = Followed & {
  /** The text with the addresses of this reader. */
  readonly placed: (text: string, instead?: Texts) => string
}

/** Saves the programs of a page, runs its commands, and compares what they print with what the page shows. */
export async function followGuide(desk: Desk, page: string, following: Following): Promise<void> {
  const all = stepsOf(page)
  const { section } = following
  const steps = section === undefined ? all : all.filter(({ sections }) => sections.includes(section))
  if (steps.length === 0) throw new Error(`${page} has no code in ${section}`)
  let last: Printed | undefined
  for (const [index, step] of steps.entries()) {
    switch (step.language) {
      case 'sh':
        last = await runCommands(desk, step, { ...following, isShown: steps[index + 1]?.language === 'text' })
        break
      case 'text':
        await mustShow(desk, patternOf(following.placed(step.code)), last)
        last = undefined
        break
      case 'json':
        if (last !== undefined && steps[index - 1]?.language === 'sh') mustBeAlike(step, last, following)
        break
      default:
        save(desk, step, following)
    }
  }
}

async function runCommands(
  desk: Desk,
  step: Step,
  { placed, instead, output, isShown }: Following & { readonly isShown: boolean },
): Promise<Printed | undefined> {
  const commands = placed(step.code, instead)
  if (keepsRunning(step)) {
    desk.leaveRunning(commands)
    return undefined
  }
  const printed = await desk.run(commands)
  if (output === 'comments') mustPrintComments(step, printed)
  // 22: curl got a refusal, which the page then shows.
  if (printed.code === 0 || (isShown && printed.code === 22)) return printed
  throw new Error(`${printed.code} is the exit code of\n${commands}\n${printed.stdout}\n${printed.stderr}`)
}

/** The comments at the ends of the lines are all that the commands print. */
function mustPrintComments({ code }: Step, { stdout, stderr }: Printed): void {
  const comments = [...code.matchAll(/^(?!#).* # (.+)$/gm)].map(([, text]) => text)
  expect(stdout.trim(), stderr).toMatch(new RegExp(`^${patternOf(comments.join('\n'))}$`))
}

/** The text is all that the last command printed or, without one, what a running program prints next. */
async function mustShow(desk: Desk, pattern: string, last: Printed | undefined): Promise<void> {
  if (last === undefined) await desk.mustPrint(pattern)
  else expect(last.stdout.trim(), last.stderr).toMatch(new RegExp(`^${pattern}$`))
}

function mustBeAlike({ code }: Step, { stdout }: Printed, { differing }: Following): void {
  expect(whyNotAsShown(JSON.parse(code), JSON.parse(stdout), differing)).toEqual([])
}

function save(desk: Desk, step: Step, { placed, instead }: Following): void {
  const name = fileOf(step)
  if (name === undefined) return
  const file = path.join(desk.place(), name)
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, placed(step.code, instead))
}
