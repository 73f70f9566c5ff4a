// How long lists with thousands of objects take to answer a key, as the page itself measures it: from the event to the
// frame after the last change of the page. It prints a line of JSON, and expects nothing of the times.
import { assert, flow, go, many, open, put, settled } from './lib.mjs'

const services = Number(process.env.SERVICES ?? 500)
const routes = Number(process.env.ROUTES ?? 10)

await flow(async (step) => {
  await put(many(services, routes))
  const page = await open()
  await settled(page)
  const times = {}
  for (const [name, place, text] of [['routes', '/route', 'shop-123 path-7'], ['services', '/service', 'shop-12'], ['upstreams', '/upstream', 'up-04'], ['map', '/map', 'shop-123'], ['map as a list', '/map?view=list', 'shop-123']]) {
    step(name)
    await go(page, place)
    const field = page.locator('[data-search]')
    await field.fill('') // both views of the map have one search
    await field.focus()
    times[name] = []
    for (const key of text) {
      const answered = page.evaluate(() => new Promise((done) => {
        let began = 0
        let last = 0
        const seen = () => requestAnimationFrame(() => { last = performance.now() })
        const changes = new MutationObserver(seen)
        changes.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true })
        addEventListener('keydown', (e) => {
          began = e.timeStamp
          seen()
          const quiet = setInterval(() => {
            if (performance.now() - last < 150) return
            clearInterval(quiet)
            changes.disconnect()
            done(last - began)
          }, 20)
        }, { once: true, capture: true })
      }))
      await page.evaluate(() => 0) // so that the page listens
      await page.keyboard.type(key)
      times[name].push(Math.round(await answered))
    }
    assert.equal(await field.inputValue(), text, name)
  }
  console.log(`times ${JSON.stringify(times)}`)
})
