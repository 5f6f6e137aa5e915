import type { Network } from '@purser/protocol'
import type { Deps } from '../src/modules.ts'
import type { Db } from '../src/platform/db/db.ts'

/** Thrown by a process that has died. */
export class Death extends Error {}

export interface Life {
  /** Runs it as a step of this process, which may die before it. */
  before<T>(doing: () => Promise<T>): Promise<T>
  isDead(): boolean
  /** How many steps it began. */
  steps(): number
}

/**
 * From its n-th step on everything fails, as for a process that has died. A death after a step is the death before the next one: what the process
 * does between them is in its memory, which is lost.
 */
export function lifeOf(lifetime: number): Life {
  let steps = 0
  const isDead = (): boolean => steps >= lifetime
  const live = (): void => {
    if (isDead()) throw new Death('this process has died')
  }
  return {
    async before(doing) {
      steps += 1
      live()
      const result = await doing()
      // It died meanwhile, in a step beside this one.
      live()
      return result
    },
    isDead,
    steps: () => steps,
  }
}

/** A database whose every statement and transaction is a step. */
export function mortalDb(db: Db, { before }: Life): Db {
  return {
    ...db,
    one: (row, statement) => before(() => db.one(row, statement)),
    maybeOne: (row, statement) => before(() => db.maybeOne(row, statement)),
    many: (row, statement) => before(() => db.many(row, statement)),
    run: (statement) => before(() => db.run(statement)),
    tx: (doing, options) =>
      before(() =>
        db.tx(async (tx) => {
          const done = await doing(tx)
          // Before the commit, so that all of it is rolled back.
          return before(async () => done)
        }, options),
      ),
  }
}

/** The dependencies of a process whose statements, node calls and signatures of wallets are steps. */
export function mortalDeps<D extends Deps>(own: D, network: Network, life: Life): D {
  const { before } = life
  const { db, chains, walletKeys } = own
  const real = chains.on(network)
  const dying = {
    ...real,
    send: (raws: Parameters<typeof real.send>[0]) => before(() => real.send(raws)),
    watch: (...requested: Parameters<typeof real.watch>) => before(() => real.watch(...requested)),
    authorizationStates: (...requested: Parameters<typeof real.authorizationStates>) =>
      before(() => real.authorizationStates(...requested)),
  }
  return {
    ...own,
    db: mortalDb(db, life),
    chains: { ...chains, on: () => dying },
    walletKeys: {
      ...walletKeys,
      signer(...of: Parameters<typeof walletKeys.signer>) {
        const signer = walletKeys.signer(...of)
        return {
          ...signer,
          signTransferWithAuthorization: (...signed: Parameters<typeof signer.signTransferWithAuthorization>) =>
            before(() => signer.signTransferWithAuthorization(...signed)),
        }
      },
    },
  }
}
