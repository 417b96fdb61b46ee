"""Small managers with vLLM's API: one that is right, and some that are wrong in one way each.

They recompute everything from two plain structures, so that there is little to get wrong.
"""


class Manager:
    """The specified manager, slow and simple."""

    def __init__(self, cache_size):
        self.cache_size = cache_size
        self.reset()

    def reset(self):
        self.sizes = {}
        self.uses = []  # (hash, request id, input id), in the order of taking
        self.idle = []  # unreferenced hashes, oldest first
        self.gone = []

    @property
    def cached(self):
        return {h: {r for g, r, _ in self.uses if g == h} for h in self.sizes}

    @property
    def freeable(self):
        return list(self.idle)

    @property
    def num_free_slots(self):
        return self.cache_size - sum(self.sizes.values())

    @property
    def num_freeable_slots(self):
        return self.num_free_slots + sum(self.sizes[h] for h in self.idle)

    def get_cached_input_ids(self, request):
        return {i for _, r, i in self.uses if r == request.request_id}

    def _take(self, request, input_id):
        h = request.mm_features[input_id].identifier
        use = (h, request.request_id, input_id)
        if use not in self.uses:
            self.uses.append(use)
        if h in self.idle:
            self.idle.remove(h)

    def check_and_update_cache(self, request, input_id):
        if request.mm_features[input_id].identifier not in self.sizes:
            return False
        self._take(request, input_id)
        return True

    def can_allocate(self, request, input_id, encoder_compute_budget, num_embeds_to_schedule):
        size = request.get_num_encoder_embeds(input_id)
        need = size + num_embeds_to_schedule
        if size > encoder_compute_budget or need > self.num_freeable_slots:
            return False
        while need > self.num_free_slots:
            h = self.idle.pop(0)
            del self.sizes[h]
            self.gone.append(h)
        return True

    def allocate(self, request, input_id):
        h = request.mm_features[input_id].identifier
        self.sizes[h] = request.get_num_encoder_embeds(input_id)
        self._take(request, input_id)

    def free_encoder_input(self, request, input_id):
        h = request.mm_features[input_id].identifier
        use = (h, request.request_id, input_id)
        if use in self.uses:
            self.uses.remove(use)
            if not self.cached[h]:
                self.idle.append(h)

    def free(self, request):
        for input_id in sorted(self.get_cached_input_ids(request)):
            self.free_encoder_input(request, input_id)

    def get_freed_mm_hashes(self):
        report = [h for h in self.gone if h not in self.sizes]
        self.gone = []
        return report


class Attaches(Manager):
    conformance_capabilities = ("allocate_again",)


class EncoderDecoder:
    """The specified manager of encoder-decoder models."""

    def __init__(self, cache_size):
        self.cache_size = cache_size
        self.reset()

    def reset(self):
        self.charged = {}
        self.this_pass = []
        self.last_pass = []

    @property
    def num_free_slots(self):
        return self.cache_size - sum(self.charged.values())

    def get_cached_input_ids(self, request):
        return set(range(len(request.mm_features)))

    def check_and_update_cache(self, request, input_id):
        return False

    def can_allocate(self, request, input_id, encoder_compute_budget, num_embeds_to_schedule):
        size = request.get_num_encoder_embeds(input_id)
        return size <= encoder_compute_budget and (
            size + num_embeds_to_schedule <= self.num_free_slots
        )

    def allocate(self, request, input_id):
        self.charged[request.request_id, input_id] = request.get_num_encoder_embeds(input_id)
        self.this_pass.append(request.mm_features[input_id].identifier)

    def free_encoder_input(self, request, input_id):
        self.charged.pop((request.request_id, input_id), None)

    def free(self, request):
        for input_id in self.get_cached_input_ids(request):
            self.free_encoder_input(request, input_id)

    def get_freed_mm_hashes(self):
        report, self.last_pass, self.this_pass = self.last_pass, self.this_pass, []
        return report


# --- wrong in one way each ---------------------------------------------------------------------


class Unfiltered(Manager):
    def get_freed_mm_hashes(self):
        report, self.gone = self.gone, []
        return report


class ReportsNothing(Manager):
    def get_freed_mm_hashes(self):
        super().get_freed_mm_hashes()
        return []


class ReportIsNotCleared(Manager):
    def get_freed_mm_hashes(self):
        return [h for h in self.gone if h not in self.sizes]


class ReportIsAString(Manager):
    def get_freed_mm_hashes(self):
        return ",".join(super().get_freed_mm_hashes())


class ReportIsNone(Manager):
    def get_freed_mm_hashes(self):
        return super().get_freed_mm_hashes() or None


class AdmissionIsAnInteger(Manager):
    def can_allocate(self, *arguments):
        return int(super().can_allocate(*arguments))


class EvictsTheNewest(Manager):
    def can_allocate(self, *arguments):
        self.idle.reverse()
        answer = super().can_allocate(*arguments)
        self.idle.reverse()
        return answer


class IgnoresPending(Manager):
    def can_allocate(self, request, input_id, encoder_compute_budget, num_embeds_to_schedule):
        return super().can_allocate(request, input_id, encoder_compute_budget, 0)


class IgnoresTheBudget(Manager):
    def can_allocate(self, request, input_id, encoder_compute_budget, num_embeds_to_schedule):
        return super().can_allocate(request, input_id, 10**9, num_embeds_to_schedule)


class ReleasesAtTheFirst(Manager):
    def free_encoder_input(self, request, input_id):
        h = request.mm_features[input_id].identifier
        mine = [u for u in self.uses if u[:2] == (h, request.request_id)]
        self.uses = [u for u in self.uses if u not in mine]
        if mine and not self.cached[h]:
            self.idle.append(h)


class ResetKeepsReferences(Manager):
    def reset(self):
        kept = getattr(self, "uses", [])
        super().reset()
        self.uses = kept


class CreditsAgain(EncoderDecoder):
    credit = 0

    @property
    def num_free_slots(self):
        return super().num_free_slots + self.credit

    def free_encoder_input(self, request, input_id):
        if (request.request_id, input_id) not in self.charged:
            self.credit += request.get_num_encoder_embeds(input_id)
        super().free_encoder_input(request, input_id)


class TellsAtOnce(EncoderDecoder):
    def get_freed_mm_hashes(self):
        report, self.this_pass = self.this_pass, []
        return report


# --- strange in other ways ---------------------------------------------------------------------


class Raises(Manager):
    def allocate(self, request, input_id):
        raise ValueError("[red]no\nroom[/red]")


class Exits(Manager):
    def allocate(self, request, input_id):
        raise SystemExit(0)


class Prints(Manager):
    def allocate(self, request, input_id):
        print("allocating")
        super().allocate(request, input_id)


class Hidden:
    """Shows no state, and has only the calls that every vLLM since 0.10.2 has."""

    def __init__(self, cache_size):
        self._inner = Manager(cache_size)

    def check_and_update_cache(self, request, input_id):
        return self._inner.check_and_update_cache(request, input_id)

    def can_allocate(self, request, input_id, encoder_compute_budget, num_tokens_to_schedule):
        return self._inner.can_allocate(
            request, input_id, encoder_compute_budget, num_tokens_to_schedule
        )

    def allocate(self, request, input_id):
        self._inner.allocate(request, input_id)

    def free_encoder_input(self, request, input_id):
        self._inner.free_encoder_input(request, input_id)

    def free(self, request):
        self._inner.free(request)

    def get_freed_mm_hashes(self):
        return self._inner.get_freed_mm_hashes()


class CannotBeMade:
    def __init__(self, cache_size):
        raise RuntimeError("no GPU here")


not_a_class = Manager(1)
