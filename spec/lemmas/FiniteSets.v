(* Finite sets, sums over them, and what it is to be finite.

   This is what the words of `Statements.v` mean. A finite set is a list of its elements, each once;
   [total] adds up the weights of its elements. Below is shown that nothing depends on the list: two
   sets with the same members have the same total, every finite predicate is such a set, and [total]
   is the only function with [total empty = 0] and one weight more for each element more. *)

From Coq Require Import List ZArith Lia Permutation.
Import ListNotations.
Open Scope Z_scope.

(* Equality is decidable, as it is in the classical logic of the solvers. *)
Class Decidable (T : Type) := same : forall x y : T, {x = y} + {x <> y}.

(* The logic of the solvers is classical. What needs that has it for a premise. *)
Definition classical : Prop := forall P : Prop, P \/ ~ P.

Record FiniteSet (T : Type) := listing { elements : list T; distinct : NoDup elements }.
Arguments listing {T} _ _.
Arguments elements {T} _.
Arguments distinct {T} _.

Definition member {T : Type} (members : FiniteSet T) (x : T) : Prop := In x (elements members).

Definition sum {T : Type} (weight : T -> Z) (xs : list T) : Z :=
  fold_right (fun x rest => weight x + rest) 0 xs.

Definition total {T : Type} (members : FiniteSet T) (weight : T -> Z) : Z :=
  sum weight (elements members).

(* A predicate is finite if a list has exactly the elements that satisfy it. *)
Definition finite {T : Type} (where_ : T -> Prop) : Prop :=
  exists xs : list T, forall x : T, In x xs <-> where_ x.

Definition empty (T : Type) : FiniteSet T := listing nil (NoDup_nil T).

Section Operations.
  Context {T : Type} {decidable : Decidable T}.

  Definition member_dec (members : FiniteSet T) (x : T) : {member members x} + {~ member members x}
    := in_dec same x (elements members).

  (* Any list, with each element once. *)
  Definition set_of (xs : list T) : FiniteSet T := listing (nodup same xs) (NoDup_nodup same xs).

  Definition insert (members : FiniteSet T) (x : T) : FiniteSet T := set_of (x :: elements members).

  Definition remove (members : FiniteSet T) (x : T) : FiniteSet T :=
    set_of (List.remove same x (elements members)).

  Definition union (one two : FiniteSet T) : FiniteSet T := set_of (elements one ++ elements two).

  Definition minus (members part : FiniteSet T) : FiniteSet T :=
    set_of (filter (fun x => if member_dec part x then false else true) (elements members)).

  (* --- the operations have the members that the translation to SMT says ----------------------- *)

  Lemma member_empty (x : T) : member (empty T) x <-> False.
  Proof. reflexivity. Qed.

  Lemma member_set_of (xs : list T) (x : T) : member (set_of xs) x <-> In x xs.
  Proof. apply nodup_In. Qed.

  Lemma member_insert (A : FiniteSet T) (x y : T) : member (insert A x) y <-> member A y \/ y = x.
  Proof.
    unfold insert. rewrite member_set_of. simpl. unfold member. intuition.
  Qed.

  Lemma member_remove (A : FiniteSet T) (x y : T) : member (remove A x) y <-> member A y /\ y <> x.
  Proof.
    unfold remove. rewrite member_set_of. unfold member. split.
    - intro H. apply in_remove in H. exact H.
    - intros [H N]. apply in_in_remove; assumption.
  Qed.

  Lemma member_union (A B : FiniteSet T) (x : T) : member (union A B) x <-> member A x \/ member B x.
  Proof. unfold union. rewrite member_set_of. apply in_app_iff. Qed.

  Lemma member_minus (A B : FiniteSet T) (x : T) : member (minus A B) x <-> member A x /\ ~ member B x.
  Proof.
    unfold minus. rewrite member_set_of, filter_In. destruct (member_dec B x); intuition congruence.
  Qed.

  (* --- totals ---------------------------------------------------------------------------------- *)

  Variable weight : T -> Z.

  Lemma sum_app (xs ys : list T) : sum weight (xs ++ ys) = sum weight xs + sum weight ys.
  Proof. induction xs as [|x xs IH]; simpl; lia. Qed.

  Lemma sum_permutation (xs ys : list T) : Permutation xs ys -> sum weight xs = sum weight ys.
  Proof. induction 1; simpl in *; lia. Qed.

  (* The total depends on the members alone. *)
  Theorem total_of_members (A B : FiniteSet T) :
    (forall x, member A x <-> member B x) -> total A weight = total B weight.
  Proof.
    intro H. apply sum_permutation, NoDup_Permutation; [apply distinct | apply distinct | exact H].
  Qed.

  Lemma total_empty : total (empty T) weight = 0.
  Proof. reflexivity. Qed.

  Lemma distinct_app (xs ys : list T) :
    NoDup xs -> NoDup ys -> (forall x, In x xs -> In x ys -> False) -> NoDup (xs ++ ys).
  Proof.
    induction xs as [|x xs IH]; intros N M D; simpl; [exact M|].
    inversion N; subst. constructor.
    - rewrite in_app_iff. intros [I|I]; [contradiction|]. apply (D x); simpl; auto.
    - apply IH; auto. intros y I J. apply (D y); simpl; auto.
  Qed.

  Lemma total_disjoint (A B C : FiniteSet T) :
    (forall x, member C x <-> member A x \/ member B x) ->
    (forall x, member A x -> member B x -> False) ->
    total C weight = total A weight + total B weight.
  Proof.
    intros H D. unfold total. rewrite <- sum_app. apply sum_permutation, NoDup_Permutation.
    - apply distinct.
    - apply distinct_app; [apply distinct | apply distinct | exact D].
    - intro x. rewrite in_app_iff. apply H.
  Qed.

  Definition singleton (x : T) : FiniteSet T :=
    listing [x] (NoDup_cons x (fun H : In x [] => H) (NoDup_nil T)).

  Lemma total_singleton (x : T) : total (singleton x) weight = weight x.
  Proof. unfold total. simpl. lia. Qed.

  Lemma member_singleton (x y : T) : member (singleton x) y <-> y = x.
  Proof. unfold member. simpl. intuition. Qed.

  Lemma total_new (A : FiniteSet T) (x : T) :
    ~ member A x -> total (insert A x) weight = total A weight + weight x.
  Proof.
    intro N. rewrite <- (total_singleton x). apply total_disjoint.
    - intro y. rewrite member_insert, member_singleton. reflexivity.
    - intros y I J. apply member_singleton in J. subst. contradiction.
  Qed.

  (* Every finite predicate is a set: what a comprehension stands for. *)
  Theorem finite_predicates_are_sets (where_ : T -> Prop) :
    finite where_ -> exists A : FiniteSet T, forall x, member A x <-> where_ x.
  Proof.
    intros [xs H]. exists (set_of xs). intro x. rewrite member_set_of. apply H.
  Qed.

  (* A function of the members that starts at 0 and grows by the weight of each new one is [total]. *)
  Theorem total_is_the_only_one (mu : FiniteSet T -> Z) :
    (forall A B, (forall x, member A x <-> member B x) -> mu A = mu B) ->
    mu (empty T) = 0 ->
    (forall A x, ~ member A x -> mu (insert A x) = mu A + weight x) ->
    forall A, mu A = total A weight.
  Proof.
    intros E Z S [xs N]. induction xs as [|x xs IH].
    - rewrite (E _ (empty T)); [exact Z | reflexivity].
    - inversion N as [|y ys NI ND]; subst.
      assert (H : forall y, member (listing (x :: xs) N) y <-> member (insert (listing xs ND) x) y).
      { intro y. rewrite member_insert. unfold member. simpl. intuition. }
      rewrite (E _ _ H), (total_of_members _ _ H), S, total_new, (IH ND); auto.
  Qed.
End Operations.

Arguments total_of_members {T} weight A B.
