import type { Network } from '@purser/protocol'
import type { Deps } from '../src/modules.ts'
import type { Db } from '../src/platform/db/db.ts'

/** Thrown by a process that has died. */
export class Death extends Error {}

export interface Life {
  /** Runs it as a step of this process, which may die before it and after it. */
  around<T>(doing: () => Promise<T>): Promise<T>
  isDead(): boolean
}

/** From its n-th step on everything fails, as for a process that has died. */
export function lifeOf(lifetime: number): Life {
  let steps = 0
  const step = (): void => {
    steps += 1
    if (steps >= lifetime) throw new Death('this process has died')
  }
  return {
    async around(doing) {
      step()
      const result = await doing()
      step()
      return result
    },
    isDead: () => steps >= lifetime,
  }
}

/** A database whose every statement and transaction is a step. */
export function mortalDb(db: Db, { around }: Life): Db {
  return {
    ...db,
    one: (row, statement) => around(() => db.one(row, statement)),
    maybeOne: (row, statement) => around(() => db.maybeOne(row, statement)),
    many: (row, statement) => around(() => db.many(row, statement)),
    run: (statement) => around(() => db.run(statement)),
    // Also at the end of the work and before its commit, so that all of it is rolled back.
    tx: (doing) => around(() => db.tx((tx) => around(() => doing(tx)))),
  }
}

/** The dependencies of a process whose statements, node calls and signatures of wallets are steps. */
export function mortalDeps<D extends Deps>(own: D, network: Network, life: Life): D {
  const { around } = life
  const { db, chains, walletKeys } = own
  const real = chains.on(network)
  const dying = {
    ...real,
    send: (raws: Parameters<typeof real.send>[0]) => around(() => real.send(raws)),
    watch: (...requested: Parameters<typeof real.watch>) => around(() => real.watch(...requested)),
    authorizationStates: (...requested: Parameters<typeof real.authorizationStates>) =>
      around(() => real.authorizationStates(...requested)),
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
            around(() => signer.signTransferWithAuthorization(...signed)),
        }
      },
    },
  }
}
